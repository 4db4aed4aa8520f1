//! Memory and its pages.

use crate::{Area, Finding, Verdict, size};
use config::Config;
use machine::Machine;
use machine::memory::{HugePages, Memory};

/// What is proposed where no configuration says what packets need.
const PROPOSED: u64 = 1 << 30;
/// The size that DPDK and most processors have.
const PAGE: u64 = 2 << 20;

pub(crate) fn examine(machine: &Machine, config: Option<&Config>, findings: &mut Vec<Finding>) {
    let memory = &machine.memory;
    let add = |what: &str, found: String, reason: &str| Finding::ok(Area::Memory, what, found, reason);
    findings.push(free(memory));
    findings.push(huge(machine, config));
    findings.extend(nodes(machine));
    if let Some(transparent) = &memory.transparent {
        let reason = "millions of sessions and flows lie in ordinary memory, which the kernel makes of huge pages where it may: a packet of a \
                      known flow costs a fifth more without";
        let finding = add("transparent huge pages", transparent.clone(), reason);
        let remedy = "# echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
        let never = transparent == "never";
        findings.push(if never { finding.but(Verdict::CouldBeBetter, remedy) } else { finding });
    }
    if let Some(limit) = machine.process.locked_memory {
        let found = if limit == u64::MAX { "unlimited".to_owned() } else { size(limit) };
        let reason = "only NICs by VFIO and AF_XDP lock memory: the whole of their packet buffers (`ulimit -l unlimited`, \
                      LimitMEMLOCK=infinity)";
        findings.push(add("locked memory", found, reason));
    }
}

fn free(memory: &Memory) -> Finding {
    let add = |found: String, reason: String| Finding::ok(Area::Memory, "free", found, reason);
    let Some(room) = &memory.room else {
        let reason = "/proc/meminfo does not say it: Millrace starts without looking whether its memory fits";
        return add("unknown".into(), reason.into());
    };
    let of = memory.total.map(|total| format!(" of {}", size(total))).unwrap_or_default();
    let reason = format!(
        "packet buffers, reserved flows and sessions are taken out of it; a start that would not fit is refused. So says {}",
        room.says
    );
    add(format!("{}{of}", size(room.ordinary)), reason)
}

fn describe(pages: &HugePages) -> String {
    let allowed = match pages.allowed {
        Some(bytes) if bytes < pages.bytes.saturating_mul(pages.free) => {
            format!("; the control group allows {}", size(bytes))
        }
        _ => String::new(),
    };
    format!("{} of {} free, of {} each{allowed}", pages.free, pages.total, size(pages.bytes))
}

fn huge(machine: &Machine, config: Option<&Config>) -> Finding {
    let memory = &machine.memory;
    let reserved: Vec<String> = memory.huge.iter().filter(|pages| pages.total > 0).map(describe).collect();
    let mounts = if memory.mounts.is_empty() { "" } else { "; mounted, which Millrace does not need" };
    let found = if reserved.is_empty() { "none reserved".into() } else { reserved.join(", ") };
    let found = format!("{found}{mounts}");
    let free = memory.free_huge();
    let need = config.map(upf::needs::buffer_bytes);
    let reason = match need {
        Some(need) => format!("the configuration's packet buffers take {}; ", size(need)),
        None => String::new(),
    } + "DPDK takes packet buffers from free huge pages, without root and without a mount; from ordinary pages otherwise, at some \
         cost in TLB misses";
    let finding = Finding::ok(Area::Memory, "huge pages", found, reason);
    if free >= need.unwrap_or(1) {
        return finding;
    }
    let pages = need.unwrap_or(PROPOSED).div_ceil(PAGE);
    finding.but(Verdict::CouldBeBetter, format!("# sysctl -w vm.nr_hugepages={pages}"))
}

/// Nodes that NICs are on and that no huge page is free on, though elsewhere there are some.
fn nodes(machine: &Machine) -> Option<Finding> {
    let lacks = |node: &usize| {
        let has = |pages: &HugePages| pages.free_by_node.iter().any(|(on, _)| on == node);
        !machine.memory.huge.iter().any(has)
    };
    let mut nodes: Vec<usize> = machine.nics.nics.iter().filter_map(|nic| nic.node).filter(lacks).collect();
    nodes.dedup();
    let node = *nodes.first()?;
    (machine.memory.free_huge() > 0).then(|| {
        let reason = "packet buffers lie on their port's node; a NIC there would have them on another one";
        let remedy = format!(
            "# echo {} > /sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages",
            PROPOSED / PAGE
        );
        let found = format!("none free on node {node}, which a NIC is on");
        Finding::ok(Area::Memory, "huge pages by node", found, reason).but(Verdict::CouldBeBetter, remedy)
    })
}
