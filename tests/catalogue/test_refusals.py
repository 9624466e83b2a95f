"""What the loader refuses: each fault with its file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue import Catalogue, check_data, check_report, load_catalogue
from engine.errors import DataError
from tests.catalogue.conftest import DATA, TABLES, Change, read, write

P5 = {"provider": "AWS", "sku": "p5.48xlarge", "region": "us-east-1", "acquisition": "on_demand"}
A2 = {"sku": "a2-highgpu-1g", "acquisition": "on_demand"}
H100 = {"sku": "h100-sxm-80gb"}
A100 = {"sku": "a100-sxm-80gb"}
EGRESS = {"id": "egress-aws-1"}
HGX = {"id": "sys-hgx-h100-8"}

# name: (table, row, cells, column that the fault names)
CELLS: dict[str, tuple[str, dict[str, str], dict[str, str], str]] = {
    "no source": ("offers.csv", P5, {"source": ""}, "source"),
    "blank source": ("offers.csv", P5, {"source": "  "}, "source"),
    "no date": ("running_costs.csv", EGRESS, {"as_of": ""}, "as_of"),
    "a date of another form": ("offers.csv", P5, {"as_of": "15.08.2026"}, "as_of"),
    "a date without dashes": ("offers.csv", P5, {"as_of": "20260815"}, "as_of"),
    "a day that isn't": ("offers.csv", P5, {"as_of": "2026-02-30"}, "as_of"),
    "a future date": ("networks.csv", {"id": "nvlink4"}, {"as_of": "2999-01-01"}, "as_of"),
    "no unit": ("running_costs.csv", EGRESS, {"unit": ""}, "unit"),
    "blank unit": ("capital.csv", HGX, {"unit": " "}, "unit"),
    "bad confidence": ("offers.csv", P5, {"confidence": "sure"}, "confidence"),
    "no confidence": ("claims.csv", {"id": "C001"}, {"confidence": ""}, "confidence"),
    "price of zero": ("offers.csv", P5, {"usd_per_instance_hour": "0.00"}, "usd_per_instance_hour"),
    "price below zero": (
        "offers.csv",
        P5,
        {"usd_per_instance_hour": "-55.04"},
        "usd_per_instance_hour",
    ),
    "price not a number": (
        "offers.csv",
        P5,
        {"usd_per_instance_hour": "NaN"},
        "usd_per_instance_hour",
    ),
    "infinite price": ("offers.csv", P5, {"usd_per_gpu_hour": "inf"}, "usd_per_gpu_hour"),
    "no price": ("offers.csv", P5, {"usd_per_instance_hour": ""}, "usd_per_instance_hour"),
    "no price per GPU": ("offers.csv", P5, {"usd_per_gpu_hour": ""}, "usd_per_gpu_hour"),
    "words for a price": (
        "offers.csv",
        P5,
        {"usd_per_instance_hour": "$55.04"},
        "usd_per_instance_hour",
    ),
    "unknown terms": ("offers.csv", P5, {"acquisition": "on demand"}, "acquisition"),
    "unknown kind": ("offers.csv", P5, {"kind": "guess"}, "kind"),
    "unknown accelerator": ("offers.csv", P5, {"accelerator_sku": "h1000"}, "accelerator_sku"),
    "GPUs of no make": ("offers.csv", P5, {"accelerator_sku": ""}, "accelerator_sku"),
    "no GPUs": ("offers.csv", P5, {"gpus_per_instance": "0"}, "gpus_per_instance"),
    "unknown server": (
        "offers.csv",
        {"sku": "m7i.24xlarge"},
        {"cpu_server_id": "m7i-25xlarge"},
        "cpu_server_id",
    ),
    "a server of another size": ("offers.csv", {"sku": "m7i.24xlarge"}, {"vcpu": "48"}, "vcpu"),
    "instance price is not its GPUs'": (
        "offers.csv",
        P5,
        {"usd_per_instance_hour": "56"},
        "usd_per_instance_hour",
    ),
    "the articles' eightfold slip": (
        "offers.csv",
        P5,
        {"usd_per_instance_hour": "450", "usd_per_gpu_hour": "56.25"},
        "usd_per_gpu_hour",
    ),
    "cents for dollars": (
        "offers.csv",
        {"provider": "Lambda", "accelerator_sku": "b200-sxm-180gb", "kind": "list"},
        {"usd_per_instance_hour": "0.08", "usd_per_gpu_hour": "0.01", "gpus_per_instance": "8"},
        "usd_per_gpu_hour",
    ),
    "a server's price in cents": (
        "offers.csv",
        {"sku": "m7i.24xlarge", "acquisition": "on_demand"},
        {"usd_per_instance_hour": "483.84"},
        "usd_per_instance_hour",
    ),
    "the host without its GPU": (
        "offers.csv",
        A2,
        {"usd_per_instance_hour": "0.94", "usd_per_gpu_hour": "0.94"},
        "usd_per_gpu_hour",
    ),
    "on demand entered as spot": (
        "offers.csv",
        P5 | {"acquisition": "spot"},
        {"usd_per_instance_hour": "55.04", "usd_per_gpu_hour": "6.88"},
        "usd_per_instance_hour",
    ),
    "memory of zero": ("accelerators.csv", H100, {"memory_gb": "0"}, "memory_gb"),
    "memory of the instance": (
        "accelerators.csv",
        {"sku": "l4"},
        {"memory_gib_reported": "178.8"},
        "memory_gib_reported",
    ),
    "no bandwidth": (
        "accelerators.csv",
        H100,
        {"memory_bandwidth_gb_per_s": ""},
        "memory_bandwidth_gb_per_s",
    ),
    "sparse fp8": ("accelerators.csv", H100, {"fp8_tflops_dense": "3958"}, "fp8_tflops_dense"),
    "sparse int8": ("accelerators.csv", H100, {"int8_tops_dense": "3958"}, "int8_tops_dense"),
    "sparse fp4": (
        "accelerators.csv",
        {"sku": "b200-sxm-180gb"},
        {"fp4_tflops_dense": "18000"},
        "fp4_tflops_dense",
    ),
    "sparse bf16 beside fp8": (
        "accelerators.csv",
        {"sku": "h100-pcie-80gb"},
        {"bf16_tflops_dense": "1513", "fp16_tflops_dense": "1513"},
        "bf16_tflops_dense",
    ),
    "sparse bf16 beside tf32": (
        "accelerators.csv",
        A100,
        {"bf16_tflops_dense": "624", "fp16_tflops_dense": "624"},
        "bf16_tflops_dense",
    ),
    "fp8 on an A100": ("accelerators.csv", A100, {"fp8_tflops_dense": "624"}, "fp8_tflops_dense"),
    "fp4 on an H100": ("accelerators.csv", H100, {"fp4_tflops_dense": "3958"}, "fp4_tflops_dense"),
    "a card's rates all sparse": (
        "accelerators.csv",
        {"sku": "h100-pcie-80gb"},
        {
            "bf16_tflops_dense": "1513",
            "fp16_tflops_dense": "1513",
            "fp8_tflops_dense": "3026",
            "tf32_tflops_dense": "756",
            "int8_tops_dense": "3026",
        },
        "bf16_tflops_dense",
    ),
    "the price of P5 before June 2025": (
        "offers.csv",
        P5,
        {"usd_per_instance_hour": "98.32", "usd_per_gpu_hour": "12.29"},
        "usd_per_instance_hour",
    ),
    "the same in another region": (
        "offers.csv",
        P5 | {"region": "eu-north-1"},
        {"usd_per_instance_hour": "98.32", "usd_per_gpu_hour": "12.29"},
        "usd_per_instance_hour",
    ),
    "a server's price before memory grew dear": (
        "offers.csv",
        {"sku": "CCX63", "kind": "list"},
        {"usd_per_instance_hour": "0.6114"},
        "usd_per_instance_hour",
    ),
    "a server of another memory": (
        "offers.csv",
        {"sku": "m7i.24xlarge"},
        {"memory_gb": "768"},
        "memory_gb",
    ),
    "more cores than threads": (
        "cpu_servers.csv",
        {"id": "m7i-24xlarge"},
        {"physical_cores": "192"},
        "physical_cores",
    ),
    "a peak that doesn't follow": (
        "cpu_servers.csv",
        {"id": "m7i-24xlarge"},
        {"peak_fp32_gflops": "19660"},
        "peak_fp32_gflops",
    ),
    "bandwidth of both sockets": (
        "cpu_servers.csv",
        {"id": "m7i-24xlarge"},
        {"memory_bandwidth_gb_per_s": "614.4"},
        "memory_bandwidth_gb_per_s",
    ),
    "a network of no layer": ("networks.csv", {"id": "nvlink4"}, {"layer": "fabric"}, "layer"),
    "bits for bytes": (
        "networks.csv",
        {"id": "ib-ndr400"},
        {"nominal_gb_per_s_per_direction_per_link": "400"},
        "nominal_gb_per_s_per_direction_per_link",
    ),
    "both directions on the wire": (
        "networks.csv",
        {"id": "nvlink4"},
        {"wire_gb_per_s_per_gpu": "734.4"},
        "wire_gb_per_s_per_gpu",
    ),
    "a port for each GPU that eight share": (
        "networks.csv",
        {"id": "eth-100g"},
        {"wire_gb_per_s_per_gpu": "10.5"},
        "wire_gb_per_s_per_gpu",
    ),
    "latency not in order": (
        "networks.csv",
        {"id": "nvlink4"},
        {"latency_us_low": "50"},
        "latency_us_low",
    ),
    "switch price not in order": (
        "networks.csv",
        {"id": "ib-ndr400"},
        {"switch_usd_high": "3000"},
        "switch_usd_low",
    ),
    "a tier beside its words": (
        "running_costs.csv",
        EGRESS,
        {"tier_up_to_gb": "1000"},
        "tier_up_to_gb",
    ),
    "two tiers of one end": (
        "running_costs.csv",
        {"id": "egress-aws-2"},
        {
            "tier_up_to_gb": "10000",
            "description": "internet egress tier up to 10000 GB per month",
        },
        "tier_up_to_gb",
    ),
    "no last tier": (
        "running_costs.csv",
        {"id": "egress-aws-4"},
        {
            "tier_up_to_gb": "500000",
            "description": "internet egress tier up to 500000 GB per month",
        },
        "tier_up_to_gb",
    ),
    "a tier of zero": ("running_costs.csv", EGRESS, {"tier_up_to_gb": "0"}, "tier_up_to_gb"),
    "traffic that pays": (
        "running_costs.csv",
        EGRESS,
        {"low": "-0.09", "likely": "-0.09"},
        "likely",
    ),
    "range above its high end": ("capital.csv", HGX, {"high": "300000"}, "likely"),
    "doubled sku": ("accelerators.csv", H100, {"sku": "a100-sxm-80gb"}, "sku"),
    "doubled id": ("running_costs.csv", EGRESS, {"id": "egress-aws-2"}, "id"),
    "range not in order": ("capital.csv", HGX, {"low": "400000"}, "likely"),
    "range with a hole": ("capital.csv", HGX, {"likely": ""}, "likely"),
    "endless range": ("capital.csv", HGX, {"high": "inf"}, "high"),
    "a limit is missing": (
        "parameters.csv",
        {"id": "price_outlier_factor"},
        {"id": "price_outlier"},
        "id",
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_cell(name: str, folder: Path, change: Change) -> None:
    table, where, to, column = CELLS[name]
    line = change(table, where, to)
    faults = check_data(folder)
    # A missing row and the second of a pair are not where the cell was changed.
    lines = {f.line for f in faults if f.file == table and f.column == column}
    assert lines, [str(f) for f in faults]
    if name not in ("a limit is missing", "doubled sku", "doubled id"):
        assert line in lines
    with pytest.raises(DataError) as raised:
        load_catalogue(folder)
    assert raised.value.right
    assert table in str(raised.value)
    assert str(folder) not in str(raised.value)
    assert check_report(folder)[1]


def test_doubled_rows_name_the_second(folder: Path, change: Change) -> None:
    line = change("running_costs.csv", {"id": "egress-aws-2"}, {"id": "egress-aws-1"})
    (fault,) = check_data(folder)
    assert (fault.line, fault.column) == (line, "id")


def test_a_replaced_price_must_be_marked(folder: Path, change: Change) -> None:
    change("offers.csv", {"sku": "HGX B200", "kind": "superseded"}, {"kind": "list"})
    (fault,) = check_data(folder)
    assert (fault.file, fault.column) == ("offers.csv", "sku")
    assert "superseded" in fault.right


def test_a_row_of_another_length(folder: Path) -> None:
    table = read(folder / "offers.csv")
    table[6] = table[6][:-1]
    write(folder / "offers.csv", table)
    with pytest.raises(DataError, match="cells, the header has") as raised:
        load_catalogue(folder)
    assert raised.value.line == 7


def test_lines_are_counted_over_line_breaks_in_cells(folder: Path) -> None:
    table = read(folder / "running_costs.csv")
    table[1][-1] = "first\nsecond"
    table[2][table[0].index("unit")] = ""
    write(folder / "running_costs.csv", table)
    with pytest.raises(DataError) as raised:
        load_catalogue(folder)
    assert (raised.value.line, raised.value.column) == (4, "unit")


@pytest.mark.parametrize("table", TABLES)
def test_files(table: str, folder: Path) -> None:
    file = folder / table
    shipped = file.read_bytes()
    first, rest = shipped.split(b"\n", 1)
    broken = {
        "byte-order mark": b"\xef\xbb\xbf" + shipped,
        "UTF-8": first + b"\n" + b"\xff\xfe" + rest,
        "empty": b"",
        "no rows": first + b"\n",
        "in the header": first + b",source\n" + rest,
        "not a table": first + b'\n"open' + rest.replace(b'"', b""),
    }
    for words, content in broken.items():
        file.write_bytes(content)
        faults = [f for f in check_data(folder) if f.file == table]
        assert any(words in str(f) for f in faults), (words, [str(f) for f in faults[:3]])
    file.write_bytes(broken["UTF-8"])
    assert next(f for f in check_data(folder) if f.file == table).line == 2
    file.unlink()
    with pytest.raises(DataError):
        load_catalogue(folder)


def test_a_missing_column_is_named(folder: Path) -> None:
    table = read(folder / "capital.csv")
    place = table[0].index("unit")
    write(folder / "capital.csv", [row[:place] + row[place + 1 :] for row in table])
    with pytest.raises(DataError) as raised:
        load_catalogue(folder)
    assert raised.value.column == "unit"


SHIPPED = {name: read(DATA / name) for name in TABLES}
CELL = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", " ", "0", "-1", "nan", "inf", "1e400", "1,5", "0x10", "\x00", "\n", '"', "\u2028"]
    ),
    st.floats().map(str),
    st.dates().map(str),
)


def loads_or_refuses(folder: Path) -> None:
    faults = check_data(folder)
    for fault in faults:
        assert isinstance(fault, DataError)
        assert fault.file in TABLES
        assert fault.line >= 1
        assert fault.column
    if not faults:
        assert isinstance(load_catalogue(folder), Catalogue)


@settings(max_examples=120)
@given(name=st.sampled_from(TABLES), draw=st.data())
def test_a_corrupted_cell_loads_or_is_refused(
    name: str, draw: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = [list(row) for row in SHIPPED[name]]
    row = draw.draw(st.integers(0, len(table) - 1))
    column = draw.draw(st.integers(0, len(table[0]) - 1))
    cell = draw.draw(CELL)
    try:
        cell.encode("utf-8")
    except UnicodeEncodeError:
        return
    table[row][column] = cell
    folder = tmp_path_factory.mktemp("tables")
    for other in TABLES:
        (folder / other).symlink_to(DATA / other)
    (folder / name).unlink()
    write(folder / name, table)
    loads_or_refuses(folder)


@settings(max_examples=60)
@given(name=st.sampled_from(TABLES), cut=st.floats(0, 1), byte=st.binary(min_size=1, max_size=3))
def test_a_corrupted_file_loads_or_is_refused(
    name: str, cut: float, byte: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    for other in TABLES:
        (folder / other).symlink_to(DATA / other)
    (folder / name).unlink()
    raw = (DATA / name).read_bytes()
    place = int(cut * len(raw))
    (folder / name).write_bytes(raw[:place] + byte + raw[place + 1 :])
    loads_or_refuses(folder)
