//! Machines that are not there, and files that lie.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::process::Capability;
use proptest::prelude::*;
use testing::MadeUp;

fn read(made_up: &MadeUp) -> Machine {
    Machine::read(&made_up.0.0)
}

#[test]
fn a_server_is_read_as_it_is() {
    let made_up = MadeUp::server("machine-server");
    made_up
        .file("proc/driver/nvidia/gpus/0000:af:00.0/information", "Model: \t\t NVIDIA H100 PCIe\nIRQ: 5\n");
    made_up.file("proc/driver/nvidia/version", "NVRM version: NVIDIA 550.54\nGCC version: 12\n");
    made_up.file("sys/bus/pci/devices/0000:af:00.0/numa_node", "1\n");
    made_up.file("dev/nvidia0", "");
    made_up.file("dev/nvidiactl", "");
    made_up.file("etc/ld.so.cache", b"glibc-ld.so.cache1.1\0libcuda.so.1\0/usr/lib/libcuda.so.1\0");
    let machine = read(&made_up);
    assert!(machine.problems.is_empty(), "{:?}", machine.problems);
    assert_eq!(machine.processor.model, "A Server's CPU");
    assert!(machine.processor.has(&["avx512vl", "vaes"]) && !machine.processor.is_virtual());
    assert_eq!(machine.clock.source.as_deref(), Some("tsc"));
    assert!(machine.clock.invariant_counter && machine.clock.counter_is_trusted());
    let topology = machine.topology.as_ref().unwrap();
    assert_eq!((topology.cores().count(), topology.nodes().collect::<Vec<_>>()), (32, vec![0, 1]));
    let huge = &machine.memory.huge[0];
    assert_eq!((huge.bytes, huge.total, huge.free), (2 << 20, 4096, 4096));
    assert_eq!((&huge.free_by_node[..], machine.memory.free_huge()), (&[(0, 2048), (1, 2048)][..], 8 << 30));
    assert_eq!(machine.memory.transparent.as_deref(), Some("madvise"));
    let nic = machine.nics.at("0000:3b:00.1").unwrap();
    assert_eq!((nic.driver.as_deref(), nic.node, nic.vendor), (Some("vfio-pci"), Some(1), Some(0x8086)));
    assert_eq!((nic.iommu_group.as_deref(), nic.group_opens), (Some("41"), true));
    assert_eq!(
        (machine.nics.nics.len(), machine.nics.iommu_groups, machine.nics.vfio_is_loaded),
        (2, 2, true)
    );
    let interface = &machine.interfaces[0];
    assert_eq!((interface.name.as_str(), interface.mtu, interface.is_up), ("eno1", Some(1500), true));
    assert_eq!((interface.rx_queues, interface.tx_queues), (1, 1));
    let held = [Capability::NetAdmin, Capability::NetRaw, Capability::IpcLock];
    assert_eq!(machine.process.capabilities.as_deref(), Some(&held[..]));
    assert_eq!(machine.process.lacks(&Capability::ALL), [Capability::NetBindService, Capability::SysAdmin]);
    assert_eq!((machine.process.locked_memory, machine.process.open_files), (Some(u64::MAX), Some(1024)));
    assert_eq!(
        (machine.kernel.af_xdp, machine.kernel.tun, machine.kernel.rmem_max),
        (Some(true), true, Some(16 << 20))
    );
    let gpu = &machine.gpus.gpus[0];
    assert_eq!((gpu.model.as_str(), gpu.node), ("NVIDIA H100 PCIe", Some(1)));
    assert_eq!((machine.gpus.device_files, machine.gpus.libcuda), (1, true));
}

#[test]
fn control_groups_bound_huge_pages() {
    let made_up = MadeUp::server("machine-groups");
    made_up.file("proc/self/cgroup", "0::/system.slice/upf.service\n");
    made_up.file("sys/fs/cgroup/system.slice/hugetlb.2MB.max", "1073741824\n");
    made_up.file("sys/fs/cgroup/system.slice/upf.service/hugetlb.2MB.max", "max\n");
    let machine = read(&made_up);
    assert_eq!((machine.memory.huge[0].allowed, machine.memory.free_huge()), (Some(1 << 30), 1 << 30));
    // Version 1.
    made_up.file("proc/self/cgroup", "3:hugetlb:/docker/7\n1:name=systemd:/\n");
    made_up.file("sys/fs/cgroup/hugetlb/docker/7/hugetlb.2MB.limit_in_bytes", "4194304\n");
    assert_eq!(read(&made_up).memory.free_huge(), 4 << 20);
}

#[test]
fn what_is_not_there_is_left_out() {
    let machine = read(&MadeUp::empty("machine-empty"));
    assert_eq!(machine.problems.len(), 1, "only that no list of cores is there: {:?}", machine.problems);
    assert!(
        machine.topology.is_none() && machine.memory.room.is_none() && machine.process.capabilities.is_none()
    );
    assert_eq!((machine.kernel.af_packet, machine.clock.source), (None, None));
    assert!(machine.process.lacks(&Capability::ALL).is_empty(), "unknown is not missing");
}

/// Every file of a server, one after the other, is something else than it should be: nothing panics, and what can't be understood is said or
/// left out.
#[test]
fn files_that_lie_are_survived() {
    let made_up = MadeUp::server("machine-lies");
    let mut files = Vec::new();
    let mut folders = vec![made_up.0.0.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|path| !path.to_str().unwrap().contains("/cpu") || path.ends_with("proc/cpuinfo"));
    assert!(files.len() > 30, "{}", files.len());
    let lies: [&[u8]; 4] =
        [b"", &[0xff; 300], b"18446744073709551615 kB\n99999999999999999999999", b"-1\n\x1b[2J: :\0"];
    for path in &files {
        let truth = std::fs::read(path).unwrap();
        for lie in lies {
            std::fs::write(path, lie).unwrap();
            let machine = read(&made_up);
            let problems: Vec<String> = machine.problems.iter().map(ToString::to_string).collect();
            assert!(!problems.iter().any(|problem| problem.contains('\u{1b}')), "{problems:?}");
        }
        std::fs::write(path, truth).unwrap();
    }
    assert!(read(&made_up).problems.is_empty());
}

#[test]
fn files_without_end_are_read_to_a_bound() {
    let made_up = MadeUp::server("machine-huge");
    for path in ["proc/cpuinfo", "proc/meminfo", "proc/self/mounts", "proc/net/protocols", "etc/ld.so.cache"]
    {
        // Sparse: a gigabyte that takes no room.
        made_up.file(path, "");
        std::fs::File::options().write(true).open(made_up.0.0.join(path)).unwrap().set_len(1 << 30).unwrap();
    }
    let machine = read(&made_up);
    assert!(machine.processor.features.is_empty() && !machine.gpus.libcuda);
    // A pipe would be waited for.
    let path = made_up.0.0.join("sys/kernel/mm/transparent_hugepage/enabled");
    std::fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let machine = read(&made_up);
    assert!(machine.memory.transparent.is_none() && machine.problems.len() == 1, "{:?}", machine.problems);
}

#[test]
fn this_machine_is_read_without_a_problem() {
    let machine = Machine::read("/".as_ref());
    // A container may hide some; what is there is understood.
    let lied = machine.problems.iter().find(|problem| matches!(problem, FileError::Unexpected { .. }));
    assert!(lied.is_none(), "{lied:?}");
    assert!(machine.memory.total.is_some_and(|bytes| bytes > 0), "Linux says");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_processes_and_mounts_say_is_read(
        status in "(CapEff:\t[0-9a-f]{0,20}|Cpus_allowed_list:[0-9,\\- ]{0,9}|\\PC{0,9}|\n){0,6}",
        limits in "(Max locked memory [0-9a-z ]{0,20}|\\PC{0,9}|\n){0,6}",
        groups in "([0-9]:(memory|hugetlb|)?:(/|\\.\\.|a){0,6}\n){0,4}",
        mounts in "(\\PC{0,4} /x hugetlbfs rw|\n| ){0,6}",
    ) {
        let made_up = MadeUp::empty("machine-any");
        made_up.file("proc/self/status", status);
        made_up.file("proc/self/limits", limits);
        made_up.file("proc/self/cgroup", groups);
        made_up.file("proc/self/mounts", mounts);
        made_up.file("proc/meminfo", "MemAvailable: 18446744073709551615 kB\n");
        let machine = read(&made_up);
        prop_assert!(machine.memory.mounts.len() <= 16);
    }
}
