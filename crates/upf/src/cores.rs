//! Which cores workers run on, why these, and what is wrong with them.

use config::{Config, DeviceName, Pin, Placement};
use engine::placement::pin;
use machine::files::FileError;
use machine::topology::{Chosen, NotEnoughCores, PortDevice, PortPlace, Topology, Warning, Wish};
use std::fmt;
use std::path::Path;

/// Where workers run.
#[derive(Debug, Default)]
pub struct Cores {
    /// By worker; `None`: wherever the kernel puts it.
    pub cores: Vec<Option<usize>>,
    /// What there is to say about each worker's core, or about all of them.
    pub reasons: Vec<String>,
    /// What is not as it should be.
    pub warnings: Vec<Warning>,
    /// What could not be found out.
    pub problems: Vec<FileError>,
}

impl Cores {
    /// Workers and ports, by number, that are on different NUMA nodes.
    pub fn far(&self) -> Vec<(usize, u16)> {
        let pair = |warning: &Warning| match warning {
            Warning::FarPort { worker, port_number, .. } => Some((*worker, *port_number)),
            _ => None,
        };
        self.warnings.iter().filter_map(pair).collect()
    }

    /// Tells the log.
    pub(super) fn log(&self) {
        self.problems.iter().for_each(|problem| tracing::info!("{problem}"));
        self.reasons.iter().for_each(|reason| tracing::info!("{reason}"));
        self.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    }
}

impl fmt::Display for Cores {
    /// A line for everything that there is to say.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reasons.iter().try_for_each(|reason| writeln!(f, "{reason}"))?;
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "note: {problem}"))
    }
}

/// Chooses cores as the configuration says, for the machine that the directory `sysfs` describes.
///
/// A configured list is taken as it is. A mere number is pinned, with `pin = "auto"`, to isolated cores, if there are
/// enough: whoever isolates cores does it for this. Other cores have other work to do, and a second UPF on the machine
/// would choose the same ones.
///
/// Errors: `pin = "always"`, and there are fewer cores than workers.
pub fn place(config: &Config, sysfs: &Path) -> Result<Cores, NotEnoughCores> {
    place_on(config, sysfs, pinnable)
}

/// The same, where `pinnable` says which of these cores a thread of the process may be pinned to.
pub fn place_on(
    config: &Config,
    sysfs: &Path,
    pinnable: impl FnOnce(Vec<usize>) -> Vec<usize>,
) -> Result<Cores, NotEnoughCores> {
    let workers = usize::from(config.workers.workers());
    let configured = match &config.workers {
        Placement::Count(_) => None,
        Placement::Cores(cores) => Some(cores.iter().map(|&core| usize::from(core)).collect::<Vec<_>>()),
    };
    let floating =
        |reason: String| Cores { cores: vec![None; workers], reasons: vec![reason], ..Cores::default() };
    let kernels = |why: &str| format!("the kernel places the {workers} workers: {why}");
    let mut topology = match Topology::read(sysfs) {
        Ok(topology) => topology,
        Err(problem) => {
            let mut cores = floating(kernels("the machine's cores are not known"));
            if let Some(configured) = configured {
                cores.reasons.clear();
                cores.cores = configured.into_iter().map(Some).collect();
            } else if config.pin == Pin::Always {
                return Err(NotEnoughCores { workers, usable: [].into() });
            }
            cores.problems.push(problem);
            return Ok(cores);
        }
    };
    let mut problems = Vec::new();
    let ports: Vec<PortPlace<'_>> = config
        .ports
        .iter()
        .map(|port| {
            let found = kernel_device(&port.device).map_or(Ok(None), |device| topology.port_node(&device));
            let node = found.unwrap_or_else(|problem| {
                problems.push(problem);
                None
            });
            PortPlace { name: &port.name, node }
        })
        .collect();
    let (chosen, reasons): (Vec<usize>, Vec<String>) = match configured {
        Some(cores) => {
            let reason = |(worker, core): (usize, &usize)| {
                format!("worker {worker} runs on core {core}, as configured")
            };
            let reasons = cores.iter().enumerate().map(reason).collect();
            (cores, reasons)
        }
        None if config.pin == Pin::Never => return Ok(floating(kernels("[workers] pin = \"never\""))),
        None => {
            let isolated = config.pin == Pin::Auto;
            let candidates = topology.cores().filter(|(_, core)| core.isolated || !isolated);
            let usable = pinnable(candidates.map(|(number, _)| number).collect());
            let nodes: Vec<_> = ports.iter().map(|port| port.node).collect();
            match topology.choose(&Wish { workers, usable: &usable, nodes: &nodes }) {
                Ok(chosen) => {
                    let reason = |(worker, chosen): (usize, &Chosen)| {
                        format!("worker {worker} runs on core {}: {}", chosen.core, chosen.why)
                    };
                    let reasons = chosen.iter().enumerate().map(reason).collect();
                    (chosen.into_iter().map(|chosen| chosen.core).collect(), reasons)
                }
                Err(refused) if isolated => {
                    let why = format!("{} isolated cores can be used", refused.usable.len());
                    return Ok(floating(kernels(&why)));
                }
                Err(refused) => return Err(refused),
            }
        }
    };
    let warnings = topology.warnings(&chosen, &ports);
    problems.extend(topology.take_problems());
    Ok(Cores { cores: chosen.into_iter().map(Some).collect(), reasons, warnings, problems })
}

/// The cores among these that a thread of this process may be pinned to. Its affinity doesn't say: isolated cores are not in
/// it, and may be used all the same unless a control group forbids it.
pub fn pinnable(cores: Vec<usize>) -> Vec<usize> {
    let probe = move || cores.into_iter().filter(|core| pin(*core).is_ok()).collect();
    // In a thread of its own, which ends where it was pinned last.
    std::thread::spawn(probe).join().unwrap_or_default()
}

/// What the kernel calls the device behind a port: of virtual devices those on a kernel interface.
pub fn kernel_device(name: &DeviceName) -> Option<PortDevice> {
    let text = match name {
        DeviceName::Pci(address) => address.to_string(),
        DeviceName::Vdev { arguments, .. } => {
            arguments.split(',').find_map(|argument| argument.strip_prefix("iface="))?.to_owned()
        }
    };
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Options, assemble, describe};
    use engine::placement::available_cores;
    use engine::{Engine, Gauge};
    use io::Port;
    use io::mem::{MemConfig, MemFrame, MemNic};
    use std::fs;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};
    use tables::clock::Tsc;

    /// As many cores as this process can be pinned to, all on node 0 and isolated as given; `eth1` is on node 1.
    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str, isolated: &str) -> Self {
            let root = std::env::temp_dir().join(format!("millrace-cores-{}-{name}", std::process::id()));
            let machine = Self(root);
            let cores: Vec<String> = available_cores().iter().map(ToString::to_string).collect();
            let cores = cores.join(",");
            machine.file("devices/system/cpu/online", &cores);
            machine.file("devices/system/cpu/isolated", if isolated == "all" { &cores } else { isolated });
            machine.file("devices/system/node/online", "0-1");
            machine.file("devices/system/node/node0/cpulist", &cores);
            machine.file("class/net/eth1/device/numa_node", "1");
            machine
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn config(workers: &str) -> Config {
        let text = format!(
            "[[port]]\nname = 'p0'\ndriver = 'af_packet'\niface = 'eth1'\n\
             [[interface]]\nname = 'n9'\nport = 'p0'\nroles = ['n9']\naddresses = ['192.0.2.1/24']\n\
             [workers]\n{workers}\n"
        );
        config::parse("test", &text, &[], &[]).unwrap()
    }

    #[test]
    fn a_number_of_workers_gets_isolated_cores_or_none() {
        let machine = Machine::new("isolated", "all");
        let placed = place(&config("count = 1"), &machine.0).unwrap();
        assert_eq!(placed.cores.len(), 1);
        assert!(placed.cores[0].is_some_and(|core| available_cores().contains(&core)));
        assert!(placed.reasons[0].ends_with("isolated, on node 0, far from all ports"), "{placed}");
        assert_eq!((placed.warnings.len(), placed.far()), (1, vec![(0, 0)]));
        assert!(placed.to_string().contains("warning: worker 0: core "));

        let machine = Machine::new("shared", "");
        let placed = place(&config("count = 2"), &machine.0).unwrap();
        assert_eq!((placed.cores, placed.warnings.len()), (vec![None, None], 0));
        assert_eq!(placed.reasons, ["the kernel places the 2 workers: 0 isolated cores can be used"]);
        let placed = place(&config("count = 1\npin = 'always'"), &machine.0).unwrap();
        assert!(placed.cores[0].is_some());
        // Far from its port, and not isolated.
        assert_eq!(placed.warnings.len(), 2);
        assert_eq!(place(&config("count = 250\npin = 'always'"), &machine.0).unwrap_err().workers, 250);
        assert_eq!(place(&config("count = 1\npin = 'never'"), &machine.0).unwrap().cores, [None]);
    }

    #[test]
    fn configured_cores_are_taken_and_examined() {
        let machine = Machine::new("configured", "all");
        let placed = place(&config("cores = [1023]"), &machine.0).unwrap();
        assert_eq!(placed.cores, [Some(1023)]);
        assert_eq!(placed.warnings, [Warning::NotOnline { worker: 0, core: 1023 }]);
        // Nothing is known of the machine: what is configured holds.
        let nowhere = Path::new("/nonexistent");
        let placed = place(&config("cores = [1, 0]"), nowhere).unwrap();
        assert_eq!((placed.cores.len(), placed.reasons.len(), placed.problems.len()), (2, 0, 1));
        assert_eq!(place(&config("count = 2"), nowhere).unwrap().cores, [None, None]);
        assert!(place(&config("count = 2\npin = 'always'"), nowhere).is_err());
    }

    #[test]
    fn packets_that_cross_between_nodes_are_counted() {
        let machine = Machine::new("crossing", "all");
        machine.file("class/net/eth0/device/numa_node", "0");
        let near = "[[port]]\nname = 'p1'\ndriver = 'af_packet'\niface = 'eth0'\n";
        let n6 = "[[interface]]\nname = 'n6'\nport = 'p1'\nroles = ['n6']\naddresses = ['203.0.113.1/24']";
        let config = config(&format!("count = 1\n{near}{n6}"));
        let placed = place(&config, &machine.0).unwrap();
        assert_eq!(placed.far(), [(0, 0)]);

        let (nics, mut wires): (Vec<_>, Vec<_>) =
            (0..2).map(|_| MemNic::new(MemConfig::default()).unwrap()).unzip();
        let mut nics: Vec<MemNic> = nics;
        let macs: Vec<_> = nics.iter().map(|nic| nic.info().mac).collect();
        let mut rib = assemble::rib(&config, &macs).unwrap();
        let datapath = assemble::datapath(&config, rib.fib(), 1, None);
        let settings = assemble::engine(&config, placed, Options::default(), 1);
        let mut engine = Engine::start(&mut nics, &settings, &datapath, Tsc::process()).unwrap();
        for (wire, packets) in wires.iter_mut().zip([3, 2]) {
            wire.offer(&mut (0..packets).map(|_| MemFrame::copy_of(&[0; 60]).unwrap()).collect());
        }
        let deadline = Instant::now() + Duration::from_mins(1);
        let line = loop {
            let line = describe::worker(&engine.reports().unwrap()[0], Gauge::default(), 1e9);
            if line.received == 5 {
                break line;
            }
            assert!(Instant::now() < deadline, "{line:?}");
            std::thread::yield_now();
        };
        assert_eq!((line.remote, line.core), (3, settings.cores[0].map(|core| core as u16)));
        engine.stop().unwrap();
    }
}
