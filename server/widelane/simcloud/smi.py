"""The `nvidia-smi` of a simulated VM: a shell script that lists its GPUs as the real program does."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

DRIVER = "570.133.20"

_NAMES = {
    "nvidia-tesla-a100": ("NVIDIA A100-SXM4-40GB", 40960, "8.0"),
    "nvidia-a100-80gb": ("NVIDIA A100-SXM4-80GB", 81920, "8.0"),
    "nvidia-h100-80gb": ("NVIDIA H100 80GB HBM3", 81559, "9.0"),
    "nvidia-h100-mega-80gb": ("NVIDIA H100 80GB HBM3", 81559, "9.0"),
    "nvidia-h200-141gb": ("NVIDIA H200", 143771, "9.0"),
    "nvidia-b200": ("NVIDIA B200", 183359, "10.0"),
    "nvidia-l4": ("NVIDIA L4", 23034, "8.9"),
}
"""Accelerator type to product name, memory in MiB and compute capability, as `nvidia-smi` prints them."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One simulated GPU. `memory_mib` is what the driver reports."""

    index: int
    uuid: str
    name: str
    memory_mib: int
    compute_capability: str


def gpus_of(machine_id: str, accelerator: str, count: int, memory_gib: float) -> tuple[Gpu, ...]:
    """The GPUs of one VM: the same UUIDs whenever the same VM is asked."""
    fallback = (accelerator.replace("-", " ").upper(), int(memory_gib * 1024), "8.0")
    name, memory, capability = _NAMES.get(accelerator, fallback)
    return tuple(
        Gpu(index, f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{machine_id}/{index}')}", name, memory, capability)
        for index in range(count)
    )


def script(gpus: tuple[Gpu, ...]) -> str:
    """The text of the program: `-L`, `--query-gpu=FIELDS --format=csv[,noheader][,nounits]`, `-i`, a summary."""
    rows = "\n".join(f"{g.index}|{g.uuid}|{g.name}|{g.memory_mib}|{g.compute_capability}" for g in gpus)
    return _SCRIPT.replace("@ROWS@", rows).replace("@DRIVER@", DRIVER).replace("@COUNT@", str(len(gpus)))


_SCRIPT = r"""#!/bin/sh
# Lists the GPUs of a simulated VM in the forms of NVIDIA's program of this name.
rows() { cat <<'END'
@ROWS@
END
}

units=1 header=1 fields= list= only=
unit() { if [ $units = 1 ]; then printf '%s %s' "$1" "$2"; else printf '%s' "$1"; fi; }

value() {
  case $1 in
    index) printf '%s' "$index" ;;
    uuid|gpu_uuid) printf '%s' "$uuid" ;;
    name|gpu_name) printf '%s' "$name" ;;
    count) printf '@COUNT@' ;;
    driver_version) printf '@DRIVER@' ;;
    compute_cap) printf '%s' "$capability" ;;
    memory.total) unit "$memory" MiB ;;
    memory.free) unit "$memory" MiB ;;
    memory.used|memory.reserved) unit 0 MiB ;;
    utilization.gpu|utilization.memory) unit 0 % ;;
    temperature.gpu) printf 30 ;;
    power.draw) unit 50.00 W ;;
    pci.bus_id|gpu_bus_id) printf '00000000:00:%02X.0' $((index + 4)) ;;
    serial|mig.mode.current|ecc.errors.uncorrected.volatile.total) printf '[N/A]' ;;
    compute_mode) printf Default ;;
    *) return 1 ;;
  esac
}

heading() {
  case $1 in
    memory.*) unit "$1" '[MiB]' ;;
    utilization.*) unit "$1" '[%]' ;;
    power.draw) unit "$1" '[W]' ;;
    *) printf '%s' "$1" ;;
  esac
}

each_field() {
  sep=
  for field in $(printf '%s' "$fields" | tr ',' ' '); do
    printf '%s' "$sep"; "$1" "$field" || return 1; sep=', '
  done
  printf '\n'
}

while [ $# -gt 0 ]; do
  case $1 in
    -L|--list-gpus) list=1 ;;
    --query-gpu=*) fields=${1#*=} ;;
    --query-compute-apps=*) exit 0 ;;
    --format=*) case ,${1#*=}, in *,noheader,*) header=0 ;; esac
                case ,${1#*=}, in *,nounits,*) units=0 ;; esac ;;
    -i) shift; only=$1 ;;
    -i=*|--id=*) only=${1#*=} ;;
    -h|--help) echo 'nvidia-smi (simulated): -L | --query-gpu=FIELDS --format=csv[,noheader][,nounits] [-i GPU]'
               exit 0 ;;
    *) echo "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help." >&2; exit 1 ;;
  esac
  shift
done

index=0 uuid= name= memory=0 capability=
if [ -n "$fields" ]; then
  for field in $(printf '%s' "$fields" | tr ',' ' '); do
    value "$field" >/dev/null || { echo "Field \"$field\" is not a valid field to query."; exit 2; }
  done
  [ $header = 0 ] || each_field heading
elif [ -z "$list" ]; then
  echo 'NVIDIA-SMI @DRIVER@ (simulated)   Driver Version: @DRIVER@   CUDA Version: 12.8'
fi

rows | {
  seen=0
  while IFS='|' read -r index uuid name memory capability; do
    [ -n "$uuid" ] || continue
    [ -z "$only" ] || case ",$only," in *",$index,"*|*",$uuid,"*) ;; *) continue ;; esac
    seen=1
    if [ -n "$fields" ]; then each_field value
    elif [ -n "$list" ]; then echo "GPU $index: $name (UUID: $uuid)"
    else echo "| $index  $name  0MiB / ${memory}MiB |"
    fi
  done
  [ $seen = 1 ] || { echo 'No devices were found'; exit 6; }
}
"""
