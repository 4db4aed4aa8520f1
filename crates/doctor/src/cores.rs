//! Where workers can run.

use crate::{Area, Finding, Verdict};
use config::Config;
use machine::Machine;
use machine::files::write_list;
use machine::topology::{Core, Topology, Wish};
use std::collections::BTreeSet;

pub(crate) fn examine(machine: &Machine, config: Option<&Config>, findings: &mut Vec<Finding>) {
    let Some(topology) = &machine.topology else {
        let reason = "/sys does not list the cores: Millrace leaves workers to the kernel, or pins them as configured without \
                      knowing of nodes and hyperthreads";
        let remedy = "in a container, mount /sys (read-only will do)";
        let finding = Finding::ok(Area::Cores, "cores", "unknown", reason);
        return findings.push(finding.but(Verdict::CouldBeBetter, remedy));
    };
    findings.push(count(machine, topology));
    if topology.cores().count() > 1 {
        findings.push(isolated(topology, config));
        findings.push(order(machine, topology));
    }
    findings.extend(governor(topology));
}

fn count(machine: &Machine, topology: &Topology) -> Finding {
    let cores = topology.cores().count();
    let physical: BTreeSet<_> = topology.cores().map(|(_, core)| &core.siblings).collect();
    let nodes = topology.nodes().count().max(1);
    let mine = machine.process.cores.as_ref().filter(|mine| mine.len() < cores);
    let mine = mine.map(|mine| format!("; this process runs on {}", write_list(mine.iter().copied())));
    let found = format!(
        "{cores}, on {} physical cores, {nodes} NUMA node{}{}",
        physical.len(),
        plural(nodes),
        mine.unwrap_or_default()
    );
    let reason =
        "a worker fills a core; of a physical core's hyperthreads one is enough, since two do little more";
    let finding = Finding::ok(Area::Cores, "cores", found, reason);
    if cores > 1 {
        return finding;
    }
    let reason = "the worker shares the only core with control and the kernel: it yields to them when it has nothing to do, and packets wait \
                  while they run";
    Finding { reason: reason.into(), ..finding }
        .but(Verdict::CouldBeBetter, "a machine with two cores or more")
}

const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn isolated(topology: &Topology, config: Option<&Config>) -> Finding {
    let isolated: Vec<usize> =
        topology.cores().filter(|(_, core)| core.isolated).map(|(number, _)| number).collect();
    if !isolated.is_empty() {
        let reason = "[workers] count pins workers to these by itself (pin = \"auto\"), if there are enough";
        return Finding::ok(Area::Cores, "isolated cores", write_list(isolated), reason);
    }
    let reason = "the kernel may run others where a worker polls, and packets wait meanwhile; workers that are only counted are not pinned";
    // As many as are wanted, else all but the first physical core, which the kernel does its own work on.
    let wanted = config.map(|config| usize::from(config.workers.workers()));
    let first = topology.core(0).map(|core| core.siblings.clone()).unwrap_or_default();
    let others = topology.cores().map(|(number, _)| number).filter(|number| !first.contains(number));
    let cores = write_list(others.take(wanted.unwrap_or(usize::MAX)));
    let remedy = format!(
        "on the kernel's command line: isolcpus={cores} nohz_full={cores} rcu_nocbs={cores} (/etc/default/grub, then # update-grub, and \
         a restart)"
    );
    Finding::ok(Area::Cores, "isolated cores", "none", reason).but(Verdict::CouldBeBetter, remedy)
}

/// Cores that are named.
const NAMED: usize = 16;

/// In which order they would be taken.
fn order(machine: &Machine, topology: &Topology) -> Finding {
    // Isolated cores are in no process's affinity, and may be used all the same.
    let may = |(number, core): &(usize, &Core)| {
        core.isolated || machine.process.cores.as_ref().is_none_or(|mine| mine.contains(number))
    };
    let all: Vec<usize> = topology.cores().filter(may).map(|(number, _)| number).collect();
    let nodes: Vec<_> = machine.nics.nics.iter().map(|nic| nic.node).collect();
    let wish = Wish { workers: all.len().min(NAMED), usable: &all, nodes: &nodes };
    // As many as there are, at most.
    let chosen = topology.choose(&wish).unwrap_or_default();
    let mut named: Vec<String> = chosen.iter().map(|chosen| chosen.core.to_string()).collect();
    if all.len() > NAMED {
        named.push("…".into());
    }
    let first = chosen.first().map(|chosen| format!(" The first is {}.", chosen.why)).unwrap_or_default();
    let reason = format!(
        "workers that Millrace places are put on cores in this order: isolated ones, one of each physical core, those on the node of a \
         port, core 0 last.{first} --config FILE says it for that file's workers and ports"
    );
    Finding::ok(Area::Cores, "order of choice", named.join(" "), reason)
}

fn governor(topology: &Topology) -> Option<Finding> {
    let of = |(_, core): (usize, &Core)| core.governor.clone();
    let governors: BTreeSet<String> = topology.cores().filter_map(of).collect();
    // Virtual machines have none: the host decides.
    if governors.is_empty() {
        return None;
    }
    let found = governors.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let reason =
        "a worker that sleeps between bursts looks idle, and a governor that follows the load slows its core";
    let finding = Finding::ok(Area::Cores, "frequency governor", found, reason);
    let remedy = "# echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    let performs = governors.iter().all(|governor| governor == "performance");
    Some(if performs { finding } else { finding.but(Verdict::CouldBeBetter, remedy) })
}
