"""The terms of all plan pages of a session."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from engine.workload.cost_terms import CostTerms
from engine.workload.jobs_terms import JobsTerms
from engine.workload.reliability_terms import ReliabilityTerms
from engine.workload.services_terms import ServicesTerms
from engine.workload.serving_terms import ServingTerms
from engine.workload.training_terms import TrainingTerms


class Settings(BaseModel):
    """The terms of all plan pages; each name is its parameter in the link."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    architecture: ServicesTerms = ServicesTerms()
    costs: CostTerms = CostTerms()
    jobs: JobsTerms = JobsTerms()
    reliability: ReliabilityTerms = ReliabilityTerms()
    serving: ServingTerms = ServingTerms()
    training: TrainingTerms = TrainingTerms()


USUAL = Settings()
