"""Refreshing the prices: read published files, judge them, write a second dated table.

`store` knows where a refreshed table lies and lays it over the shipped one; `formats` and `fetch`
read what others publish; `names` translates their names; `plan` judges; `run` is the command.
The shipped table is never written to.
"""
