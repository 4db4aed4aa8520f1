//! Cores for workers, with reasons and warnings.

use super::{Core, Topology};
use crate::files::write_list;
use std::collections::BTreeSet;
use std::fmt;

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// How many cores.
    pub workers: usize,
    /// Cores that may be used; those that are not online don't count.
    pub usable: &'a [usize],
    /// The nodes of all ports, where they are known.
    pub nodes: &'a [Option<usize>],
}

/// A core that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its number.
    pub core: usize,
    /// Why it.
    pub why: Why,
}

/// What speaks for a core, and what against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// It is isolated.
    pub isolated: bool,
    /// No other hyperthread of its physical core was chosen before.
    pub own_physical_core: bool,
    /// Its NUMA node.
    pub node: Option<usize>,
    /// A port is on that node; `None`: nothing is known of one of the two.
    pub near_port: Option<bool>,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.isolated { "isolated" } else { "not isolated" })?;
        if !self.own_physical_core {
            f.write_str(", second hyperthread of a core that another worker has")?;
        }
        match (self.node, self.near_port) {
            (Some(node), Some(true)) => write!(f, ", on node {node} as a port is"),
            (Some(node), Some(false)) => write!(f, ", on node {node}, far from all ports"),
            (Some(node), None) => write!(f, ", on node {node}"),
            (None, _) => Ok(()),
        }
    }
}

/// There are fewer cores than workers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{workers} workers want a core each; there are {} to choose from: {}", usable.len(), write_list(usable.iter().copied()))]
pub struct NotEnoughCores {
    /// How many are wanted.
    pub workers: usize,
    /// What there is.
    pub usable: BTreeSet<usize>,
}

/// A port and the node it is on.
#[derive(Clone, Copy, Debug)]
pub struct PortPlace<'a> {
    /// Its name.
    pub name: &'a str,
    /// If it is known.
    pub node: Option<usize>,
}

/// What costs a worker packets per second or evenness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// There is no such core, or it is offline.
    NotOnline {
        /// The worker.
        worker: usize,
        /// Its core.
        core: usize,
    },
    /// Each packet crosses from one socket or node to another.
    FarPort {
        /// The worker.
        worker: usize,
        /// Its core.
        core: usize,
        /// Where that is.
        node: usize,
        /// The port.
        port: String,
        /// Its number: its place in the list that was given.
        port_number: u16,
        /// Where that is.
        port_node: usize,
    },
    /// Two workers share a physical core.
    SharedPhysicalCore {
        /// The worker.
        worker: usize,
        /// Its core.
        core: usize,
        /// An earlier worker.
        other: usize,
        /// That one's core.
        other_core: usize,
    },
    /// The kernel may run others there.
    NotIsolated {
        /// The worker.
        worker: usize,
        /// Its core.
        core: usize,
    },
    /// The core's frequency follows its load, which a worker that sleeps between bursts makes look small.
    Governor {
        /// The worker.
        worker: usize,
        /// Its core.
        core: usize,
        /// What it is set to.
        governor: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOnline { worker, core } => write!(f, "worker {worker}: core {core} is not online"),
            Self::FarPort { worker, core, node, port, port_node, .. } => write!(
                f,
                "worker {worker}: core {core} is on NUMA node {node}, port {port} on node {port_node}: each packet crosses"
            ),
            Self::SharedPhysicalCore { worker, core, other, other_core } => write!(
                f,
                "worker {worker}: core {core} is a hyperthread of the same physical core as {other_core}, which worker \
                 {other} has"
            ),
            Self::NotIsolated { worker, core } => write!(
                f,
                "worker {worker}: core {core} is not isolated: the kernel may run others there (isolcpus)"
            ),
            Self::Governor { worker, core, governor } => write!(
                f,
                "worker {worker}: core {core} has the frequency governor `{governor}`, not `performance`"
            ),
        }
    }
}

impl Topology {
    /// Cores for workers, in order, as the [module](super) says. A configured list needs no choice.
    ///
    /// Errors: there are fewer usable cores that are online.
    pub fn choose(&self, wish: &Wish<'_>) -> Result<Vec<Chosen>, NotEnoughCores> {
        let mut left: BTreeSet<usize> =
            wish.usable.iter().copied().filter(|core| self.core(*core).is_some()).collect();
        if left.len() < wish.workers {
            return Err(NotEnoughCores { workers: wish.workers, usable: left });
        }
        let mut chosen: Vec<Chosen> = Vec::with_capacity(wish.workers.min(left.len()));
        while chosen.len() < wish.workers {
            let taken = |core: &Core| chosen.iter().any(|other| core.siblings.contains(&other.core));
            let found = left.iter().filter_map(|&number| Some((number, self.core(number)?)));
            let best = found.min_by_key(|(number, core)| {
                let far = near(core, wish.nodes) == Some(false);
                (!core.isolated, taken(core), far, core.siblings.contains(&0), *number == 0, *number)
            });
            // There are as many as are wanted.
            let Some((number, core)) = best else { break };
            let why = Why {
                isolated: core.isolated,
                own_physical_core: !taken(core),
                node: core.node,
                near_port: near(core, wish.nodes),
            };
            chosen.push(Chosen { core: number, why });
            left.remove(&number);
        }
        Ok(chosen)
    }

    /// What is not as it should be if workers are pinned to these cores and poll these ports.
    pub fn warnings(&self, cores: &[usize], ports: &[PortPlace<'_>]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (worker, &number) in cores.iter().enumerate() {
            let Some(core) = self.core(number) else {
                warnings.push(Warning::NotOnline { worker, core: number });
                continue;
            };
            for (port_number, port) in (0..).zip(ports) {
                if let (Some(node), Some(port_node)) = (core.node, port.node)
                    && node != port_node
                {
                    let port = port.name.to_owned();
                    let far = Warning::FarPort { worker, core: number, node, port, port_number, port_node };
                    warnings.push(far);
                }
            }
            let other = cores.iter().take(worker).position(|other| core.siblings.contains(other));
            if let Some(other) = other {
                let other_core = cores.get(other).copied().unwrap_or(number);
                warnings.push(Warning::SharedPhysicalCore { worker, core: number, other, other_core });
            }
            if !core.isolated {
                warnings.push(Warning::NotIsolated { worker, core: number });
            }
            if let Some(governor) = core.governor.clone().filter(|governor| governor != "performance") {
                warnings.push(Warning::Governor { worker, core: number, governor });
            }
        }
        warnings
    }
}

/// Whether one of the nodes is the core's; `None`: not known.
fn near(core: &Core, nodes: &[Option<usize>]) -> Option<bool> {
    let node = core.node?;
    let mut known = nodes.iter().flatten().peekable();
    known.peek()?;
    Some(known.any(|port| *port == node))
}
