//! Who else can compute.

use crate::{Area, Finding, Program, Verdict};
use machine::Machine;

pub(crate) fn examine(machine: &Machine, program: &Program, findings: &mut Vec<Finding>) {
    let gpus = &machine.gpus;
    let add = |found: String, reason: &str| Finding::ok(Area::Accelerators, "CUDA", found, reason);
    if gpus.gpus.is_empty() && gpus.device_files == 0 {
        // Not all drivers have these files (on Windows' Linux they don't): what the driver says comes before them.
        return findings.push(match &program.gpus {
            Some(Ok(gpus)) => add(gpus.join("; "), "CUDA's driver has it"),
            Some(Err(why)) => add("no CUDA device".into(), &format!("the processor does all of it: {why}")),
            None => add("no CUDA device".into(), "the processor does all of it"),
        });
    }
    let named = |gpu: &machine::gpu::Gpu| {
        let model = if gpu.model.is_empty() { "unknown model" } else { &gpu.model };
        let node = gpu.node.map(|node| format!(", node {node}")).unwrap_or_default();
        format!("{model} ({}{node})", gpu.address)
    };
    let mut found: Vec<String> = gpus.gpus.iter().map(named).collect();
    if found.is_empty() {
        found.push(format!("{} device files, which the driver doesn't describe", gpus.device_files));
    }
    let found = found.join("; ");
    findings.push(if gpus.device_files == 0 {
        let reason = "NVIDIA's driver has it, and there is no /dev/nvidia0: CUDA can't open it";
        add(found, reason).but(Verdict::CouldBeBetter, "# nvidia-modprobe -c 0 -u (a container: --gpus all)")
    } else if let Some(Ok(gpus)) = &program.gpus {
        add(found, &format!("CUDA starts, with {}", gpus.join("; ")))
    } else if gpus.libcuda {
        match &program.gpus {
            Some(Err(why)) => add(found, &format!("CUDA can be loaded, and doesn't start: {why}"))
                .but(Verdict::CouldBeBetter, "look at docs/accel.md"),
            _ => add(found, "CUDA can be loaded; whether it starts shows when it is asked for"),
        }
    } else {
        let reason =
            "the loader does not know libcuda.so.1, which NVIDIA's driver brings: CUDA can't be loaded";
        add(found, reason).but(Verdict::CouldBeBetter, "# apt-get install libcuda1 && ldconfig")
    });
}
