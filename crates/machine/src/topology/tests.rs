//! Machines in a directory: two sockets with hyperthreads, a plain virtual machine, and machines that lie.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::files::MAX_NUMBER;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that looks like `/sys`; gone at the end.
struct Machine(PathBuf);

impl Machine {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("millrace-sysfs-{}-{number}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        Self(root)
    }

    fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn cpu(&self, path: &str, text: &str) {
        self.file(&format!("devices/system/cpu/{path}"), format!("{text}\n"));
    }

    /// Two sockets of four physical cores with two hyperthreads each: 0 to 3 and 8 to 11 are on the first one, `n + 8` is the
    /// other hyperthread of `n`. Core 5 is offline.
    fn two_sockets(isolated: &str) -> Self {
        let machine = Self::new();
        machine.cpu("online", "0-4,6-15");
        machine.cpu("isolated", isolated);
        machine.cpu("nohz_full", "(null)");
        machine.file("devices/system/node/online", "0-1\n");
        machine.file("devices/system/node/node0/cpulist", "0-3,8-11\n");
        machine.file("devices/system/node/node1/cpulist", "4,6-7,12-15\n");
        for core in (0..16).filter(|core| *core != 5) {
            let siblings =
                if core == 13 { "13".to_owned() } else { format!("{},{}", core % 8, core % 8 + 8) };
            machine.cpu(&format!("cpu{core}/topology/thread_siblings_list"), &siblings);
            machine.cpu(&format!("cpu{core}/topology/physical_package_id"), &(core % 8 / 4).to_string());
            machine.cpu(&format!("cpu{core}/cpufreq/scaling_governor"), "performance");
            machine.cpu(&format!("cpu{core}/power/pm_qos_resume_latency_us"), "0");
        }
        machine.file("bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
        machine.file("bus/pci/devices/0000:18:00.1/numa_node", "0\n");
        machine.file("bus/pci/devices/0000:00:03.0/numa_node", "-1\n");
        machine.file("class/net/eth1/device/numa_node", "1\n");
        machine
    }

    fn read(&self) -> Topology {
        Topology::read(&self.0).unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn chosen(topology: &Topology, workers: usize, node: Option<usize>) -> Vec<usize> {
    let usable: Vec<usize> = (0..32).collect();
    let chosen = topology.choose(&Wish { workers, usable: &usable, nodes: &[node] }).unwrap();
    chosen.into_iter().map(|chosen| chosen.core).collect()
}

#[test]
fn two_sockets_are_read() {
    let machine = Machine::two_sockets("6-7,14-15");
    machine.cpu("cpu6/cpufreq/scaling_governor", "powersave");
    machine.cpu("cpu7/power/pm_qos_resume_latency_us", "n/a");
    let topology = machine.read();
    assert!(topology.problems().is_empty(), "{:?}", topology.problems());
    assert_eq!(topology.cores().count(), 15);
    let core = topology.core(6).unwrap();
    assert_eq!(
        *core,
        Core {
            node: Some(1),
            package: Some(1),
            siblings: [6, 14].into(),
            isolated: true,
            tickless: false,
            governor: Some("powersave".into()),
            wake_up_us: None,
        }
    );
    assert_eq!(topology.core(7).unwrap().wake_up_us, Some(0));
    assert_eq!(topology.core(5), None);
    let node = |device: &str| topology.port_node(&device.parse().unwrap()).unwrap();
    assert_eq!(node("0000:3b:00.0"), Some(1));
    assert_eq!(node("0000:18:00.1"), Some(0));
    assert_eq!(node("0000:00:03.0"), None);
    assert_eq!(node("0000:99:00.0"), None);
    assert_eq!((node("eth1"), node("lo")), (Some(1), None));
}

#[test]
fn isolated_cores_come_first_then_whole_ones_then_near_ones() {
    let machine = Machine::two_sockets("2-3,6-7,10-11,14-15");
    let topology = machine.read();
    assert_eq!(chosen(&topology, 2, Some(1)), [6, 7]);
    // Then those of the other node, before second hyperthreads; then others.
    assert_eq!(chosen(&topology, 4, Some(1)), [6, 7, 2, 3]);
    assert_eq!(chosen(&topology, 6, Some(1)), [6, 7, 2, 3, 14, 15]);
    assert_eq!(chosen(&topology, 9, Some(0))[..8], [2, 3, 6, 7, 10, 11, 14, 15]);
    assert_eq!(chosen(&topology, 2, None), [2, 3]);
    let all = chosen(&topology, 15, Some(0));
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 15);
    assert!(!all.contains(&5));
}

#[test]
fn core_0_comes_last_of_its_kind() {
    let machine = Machine::two_sockets("");
    let topology = machine.read();
    assert_eq!(chosen(&topology, 4, Some(0)), [1, 2, 3, 8]);
    assert_eq!(chosen(&topology, 5, Some(0))[4], 4);
    let usable = [0, 1, 8, 9];
    let chosen = topology.choose(&Wish { workers: 4, usable: &usable, nodes: &[Some(1)] }).unwrap();
    let why: Vec<String> = chosen.iter().map(|chosen| format!("{} {}", chosen.core, chosen.why)).collect();
    assert_eq!(
        why,
        [
            "1 not isolated, on node 0, far from all ports",
            "8 not isolated, on node 0, far from all ports",
            "9 not isolated, second hyperthread of a core that another worker has, on node 0, far from all ports",
            "0 not isolated, second hyperthread of a core that another worker has, on node 0, far from all ports",
        ]
    );
    let refused =
        topology.choose(&Wish { workers: 5, usable: &[0, 1, 5, 8, 9, 77], nodes: &[] }).unwrap_err();
    assert_eq!(refused.to_string(), "5 workers want a core each; there are 4 to choose from: 0-1,8-9");
}

#[test]
fn what_is_wrong_with_a_placement_is_said() {
    let machine = Machine::two_sockets("2,6,10");
    machine.cpu("cpu2/cpufreq/scaling_governor", "schedutil");
    let topology = machine.read();
    let ports = [PortPlace { name: "core", node: None }, PortPlace { name: "access", node: Some(1) }];
    assert_eq!(topology.warnings(&[6], &ports), []);
    let warnings = topology.warnings(&[6, 2, 10, 5, 7], &ports);
    let far = |worker, core| {
        let port = "access".into();
        Warning::FarPort { worker, core, node: 0, port, port_number: 1, port_node: 1 }
    };
    assert_eq!(
        warnings,
        [
            far(1, 2),
            Warning::Governor { worker: 1, core: 2, governor: "schedutil".into() },
            far(2, 10),
            Warning::SharedPhysicalCore { worker: 2, core: 10, other: 1, other_core: 2 },
            Warning::NotOnline { worker: 3, core: 5 },
            Warning::NotIsolated { worker: 4, core: 7 },
        ]
    );
    assert_eq!(
        warnings[0].to_string(),
        "worker 1: core 2 is on NUMA node 0, port access on node 1: each packet crosses"
    );
    assert!(warnings.iter().all(|warning| warning.to_string().starts_with("worker ")));
}

#[test]
fn a_plain_machine_has_cores_and_nothing_else() {
    let machine = Machine::new();
    machine.cpu("online", "0-1");
    let topology = machine.read();
    assert!(topology.problems().is_empty());
    assert_eq!(topology.core(1), Some(&Core { siblings: [1].into(), ..Core::default() }));
    assert_eq!(chosen(&topology, 2, Some(0)), [1, 0]);
    assert_eq!(topology.warnings(&[1], &[PortPlace { name: "a", node: Some(0) }]).len(), 1);
}

#[test]
fn strange_files_are_named_and_do_not_count() {
    let machine = Machine::two_sockets("0-99999999999");
    machine.file("devices/system/node/node1/cpulist", "4-\u{1b}[2Jx");
    machine.file("devices/system/cpu/cpu1/cpufreq/scaling_governor", [0xff; 9]);
    machine.file("devices/system/cpu/cpu2/topology/thread_siblings_list", "7,".repeat(100_000));
    machine.cpu("cpu3/topology/physical_package_id", "-7");
    machine.cpu("cpu3/power/pm_qos_resume_latency_us", "soon");
    fs::remove_file(machine.0.join("devices/system/cpu/nohz_full")).unwrap();
    fs::create_dir(machine.0.join("devices/system/cpu/nohz_full")).unwrap();
    let topology = machine.read();
    let said: Vec<String> = topology.problems().iter().map(ToString::to_string).collect();
    let of = |what: &str| said.iter().filter(|said| said.contains(what)).count();
    assert_eq!(said.len(), 7, "{said:#?}");
    assert_eq!(of("isolated says `0-99999999999`, which is not a list of numbers below 1024"), 1);
    assert_eq!(of("node1/cpulist says `4-\u{fffd}[2Jx`"), 1);
    assert_eq!((of("scaling_governor says"), of("which is not text")), (1, 1));
    assert_eq!((of("thread_siblings_list is not there, no file"), of("nohz_full is not there")), (1, 1));
    assert_eq!((of("physical_package_id says `-7`"), of("says `soon`")), (1, 1));
    assert_eq!(topology.core(2).unwrap().siblings, [2].into());
    assert_eq!(topology.core(6).unwrap().node, None);
    assert_eq!(topology.cores().filter(|(_, core)| core.isolated).count(), 0);
    machine.file("bus/pci/devices/0000:3b:00.0/numa_node", "one");
    assert!(topology.port_node(&"0000:3b:00.0".parse().unwrap()).is_err());
}

#[test]
fn without_a_list_of_cores_there_is_no_topology() {
    let machine = Machine::new();
    assert!(matches!(Topology::read(&machine.0), Err(FileError::NoSuchFile { .. })));
    for wrong in ["", "x", "5-2", "0-4096"] {
        machine.cpu("online", wrong);
        assert!(Topology::read(&machine.0).is_err(), "{wrong}");
    }
    // Opening a named pipe would wait for ever.
    let path = machine.0.join("devices/system/cpu/online");
    fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(matches!(Topology::read(&machine.0), Err(FileError::NoSuchFile { .. })));
}

#[test]
fn devices_are_names_and_no_paths() {
    let device = |text: &str| text.parse::<PortDevice>();
    assert_eq!(device("0000:3B:00.0"), Ok(PortDevice::Pci("0000:3b:00.0".into())));
    assert_eq!(device("eth1.300"), Ok(PortDevice::Interface("eth1.300".into())));
    for wrong in [
        "",
        ".",
        "..",
        "a/b",
        "../../etc",
        "0000:3b:00",
        "0000:3b.00.0/",
        "eth:0",
        "sixteen-letters!",
        "a b",
        "é",
    ] {
        assert!(device(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn this_machine_can_be_read() {
    let Ok(topology) = Topology::read(SYSFS.as_ref()) else { return };
    assert!(topology.problems().is_empty(), "{:?}", topology.problems());
    let mine = rustix::thread::sched_getaffinity(None).unwrap();
    for core in (0..MAX_NUMBER).filter(|core| mine.is_set(*core)) {
        assert!(topology.core(core).is_some_and(|found| found.siblings.contains(&core)), "core {core}");
    }
}

#[test]
fn whatever_files_say_cores_are_chosen_once() {
    let machine = Machine::two_sockets("");
    let files = [
        "devices/system/cpu/isolated",
        "devices/system/cpu/nohz_full",
        "devices/system/node/online",
        "devices/system/node/node1/cpulist",
        "devices/system/cpu/cpu1/topology/thread_siblings_list",
        "devices/system/cpu/cpu1/topology/physical_package_id",
        "devices/system/cpu/cpu1/cpufreq/scaling_governor",
        "devices/system/cpu/cpu1/power/pm_qos_resume_latency_us",
    ];
    let text = "[0-9,\\-\n]{0,12}|\\PC{0,12}|(null)|-1|n/a|performance";
    let cases = (proptest::collection::vec(text, files.len()), 0usize..6);
    let config = ProptestConfig { cases: 64, source_file: Some(file!()), ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&cases, |(texts, workers)| {
            for (file, text) in files.iter().zip(&texts) {
                machine.file(file, text);
            }
            let topology = machine.read();
            let cores = chosen(&topology, workers, Some(1));
            prop_assert_eq!(cores.iter().collect::<BTreeSet<_>>().len(), workers);
            prop_assert!(cores.iter().all(|core| topology.core(*core).is_some()));
            for warning in topology.warnings(&cores, &[PortPlace { name: "a", node: Some(1) }]) {
                prop_assert!(!warning.to_string().chars().any(char::is_control));
            }
            Ok(())
        })
        .unwrap();
}
