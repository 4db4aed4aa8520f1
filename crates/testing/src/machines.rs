//! Machines that are not there: the files that a kernel would tell of them, in a directory.

use crate::Directory;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;

/// A directory that looks like `/`, as far as somebody who looks at a machine reads it.
#[derive(Debug)]
pub struct MadeUp(pub Directory);

impl MadeUp {
    /// One without any file.
    pub fn empty(name: &str) -> Self {
        Self(Directory::new(name))
    }

    /// Writes a file.
    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.0.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes a link, which need not lead anywhere.
    pub fn link(&self, path: &str, target: &str) {
        let path = self.0.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
    }

    /// Cores, each a physical one of its own, all on node 0.
    fn cores(&self, count: usize, governor: Option<&str>) {
        let all = format!("0-{}\n", count - 1);
        self.file("sys/devices/system/cpu/online", &all);
        self.file("sys/devices/system/cpu/isolated", "\n");
        self.file("sys/devices/system/node/online", "0\n");
        self.file("sys/devices/system/node/node0/cpulist", &all);
        for core in 0..count {
            let of = |file: &str| format!("sys/devices/system/cpu/cpu{core}/{file}");
            self.file(&of("topology/thread_siblings_list"), format!("{core}\n"));
            self.file(&of("topology/physical_package_id"), "0\n");
            if let Some(governor) = governor {
                self.file(&of("cpufreq/scaling_governor"), format!("{governor}\n"));
            }
        }
        self.process("0000000000000000", &all, "65536");
    }

    /// What the process may do.
    pub fn process(&self, capabilities: &str, cores: &str, locked: &str) {
        self.file(
            "proc/self/status",
            format!("Name:\tx\nCapEff:\t{capabilities}\nCpus_allowed_list:\t{cores}"),
        );
        let limits = format!(
            "Limit                     Soft Limit           Hard Limit           Units\n\
             Max open files            1024                 4096                 files\n\
             Max locked memory         {locked}             {locked}             bytes\n"
        );
        self.file("proc/self/limits", limits);
    }

    fn processor(&self, model: &str, flags: &str) {
        let mut table = String::new();
        for core in 0..2 {
            write!(table, "processor\t: {core}\nmodel name\t: {model}\nflags\t\t: {flags}\n\n").unwrap();
        }
        self.file("proc/cpuinfo", table);
    }

    fn memory(&self, gigabytes: u64) {
        let kilobytes = gigabytes << 20;
        let text = format!(
            "MemTotal:       {kilobytes} kB\nMemAvailable:   {kilobytes} kB\nHugePages_Total:       0\nHugePages_Free:        0\n\
             Hugepagesize:       2048 kB\n"
        );
        self.file("proc/meminfo", text);
        self.file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        self.huge_pages(0, 0);
    }

    /// So many huge pages of 2 MB, of which so many are free.
    pub fn huge_pages(&self, total: u64, free: u64) {
        self.file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", format!("{total}\n"));
        self.file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", format!("{free}\n"));
    }

    fn clock(&self, source: &str, available: &str) {
        let folder = "sys/devices/system/clocksource/clocksource0";
        self.file(&format!("{folder}/current_clocksource"), format!("{source}\n"));
        self.file(&format!("{folder}/available_clocksource"), format!("{available}\n"));
    }

    fn sockets(&self) {
        let header = "protocol  size sockets  memory press maxhdr\n";
        self.file(
            "proc/net/protocols",
            format!("{header}PACKET    1600      0\nXDP       1088      0\nUDP       1344      0\n"),
        );
        self.file("proc/sys/net/core/rmem_max", "212992\n");
        self.file("proc/sys/net/ipv4/ip_unprivileged_port_start", "1024\n");
        self.file("proc/sys/kernel/osrelease", "6.1.0-made-up\n");
        self.file("dev/net/tun", "");
        self.file("sys/bus/pci/devices/0000:00:00.0/class", "0x060000\n");
    }

    /// An interface of the kernel's.
    pub fn interface(&self, name: &str, mtu: u16, up: bool) {
        let of = |file: &str| format!("sys/class/net/{name}/{file}");
        self.file(&of("ifindex"), "2\n");
        self.file(&of("type"), "1\n");
        self.file(&of("mtu"), format!("{mtu}\n"));
        self.file(&of("flags"), if up { "0x1003\n" } else { "0x1002\n" });
        self.file(&of("operstate"), if up { "up\n" } else { "down\n" });
        self.file(&of("queues/rx-0/rps_cpus"), "0\n");
        self.file(&of("queues/tx-0/xps_cpus"), "0\n");
    }

    /// A NIC of Intel's, bound to a driver, in an IOMMU group of its own.
    pub fn nic(&self, address: &str, driver: &str, node: usize, group: usize) {
        let of = |file: &str| format!("sys/bus/pci/devices/{address}/{file}");
        self.file(&of("class"), "0x020000\n");
        self.file(&of("vendor"), "0x8086\n");
        self.file(&of("device"), "0x1592\n");
        self.file(&of("numa_node"), format!("{node}\n"));
        self.link(&of("driver"), &format!("../../../bus/pci/drivers/{driver}"));
        self.link(&of("iommu_group"), &format!("../../../kernel/iommu_groups/{group}"));
        self.file(&format!("sys/kernel/iommu_groups/{group}/type"), "DMA\n");
    }

    /// A laptop: four cores that save energy, Wi-Fi, no huge pages, a user without privileges.
    pub fn laptop(name: &str) -> Self {
        let machine = Self::empty(name);
        machine.processor("A Laptop's CPU", "fpu sse2 sse4_1 sse4_2 aes avx2 constant_tsc nonstop_tsc");
        machine.clock("tsc", "tsc hpet acpi_pm");
        machine.cores(4, Some("powersave"));
        machine.memory(8);
        machine.sockets();
        machine.interface("wlan0", 1500, true);
        machine
    }

    /// A server: two sockets of eight cores with two hyperthreads each, isolated ones on both, and two NICs on VFIO, on node 1.
    pub fn server(name: &str) -> Self {
        let machine = Self::empty(name);
        let flags = "fpu sse2 sse4_1 sse4_2 aes vaes avx2 avx512f avx512bw avx512vl constant_tsc nonstop_tsc";
        machine.processor("A Server's CPU", flags);
        machine.clock("tsc", "tsc hpet acpi_pm");
        machine.file("sys/devices/system/cpu/online", "0-31\n");
        machine.file("sys/devices/system/cpu/isolated", "2-7,10-15\n");
        machine.file("sys/devices/system/node/online", "0-1\n");
        machine.file("sys/devices/system/node/node0/cpulist", "0-7,16-23\n");
        machine.file("sys/devices/system/node/node1/cpulist", "8-15,24-31\n");
        for core in 0..32 {
            let of = |file: &str| format!("sys/devices/system/cpu/cpu{core}/{file}");
            machine.file(&of("topology/thread_siblings_list"), format!("{},{}\n", core % 16, core % 16 + 16));
            machine.file(&of("topology/physical_package_id"), format!("{}\n", core % 16 / 8));
            machine.file(&of("cpufreq/scaling_governor"), "performance\n");
        }
        machine.process("0000000000007000", "0-1,8-9,16-31\n", "unlimited");
        machine.memory(256);
        machine.huge_pages(4096, 4096);
        for node in 0..2 {
            let folder = format!("sys/devices/system/node/node{node}/hugepages/hugepages-2048kB");
            machine.file(&format!("{folder}/free_hugepages"), "2048\n");
        }
        machine.sockets();
        machine.file("proc/sys/net/core/rmem_max", "16777216\n");
        machine.nic("0000:3b:00.0", "vfio-pci", 1, 40);
        machine.nic("0000:3b:00.1", "vfio-pci", 1, 41);
        machine.file("sys/bus/pci/drivers/vfio-pci/new_id", "");
        machine.file("dev/vfio/40", "");
        machine.file("dev/vfio/41", "");
        machine.interface("eno1", 1500, true);
        machine
    }

    /// A virtual machine of one core whose time-stamp counter is not to be trusted, without AVX2 and SSE4.2.
    pub fn virtual_machine(name: &str) -> Self {
        let machine = Self::empty(name);
        machine.processor("QEMU Virtual CPU version 2.5+", "fpu sse2 hypervisor");
        machine.clock("hpet", "hpet acpi_pm");
        machine.cores(1, None);
        machine.memory(2);
        machine.sockets();
        machine.interface("eth0", 1500, true);
        machine
    }

    /// A container that sees no `/sys`, and a control group that allows 512 MB.
    pub fn container(name: &str) -> Self {
        let machine = Self::empty(name);
        machine.processor("A Server's CPU", "fpu sse2 sse4_1 sse4_2 aes avx2 constant_tsc nonstop_tsc");
        machine.memory(256);
        machine.sockets();
        fs::remove_dir_all(machine.0.0.join("sys")).unwrap();
        machine.process("0000000000003000", "4-7\n", "8388608");
        machine.file("proc/self/cgroup", "0::/\n");
        machine
    }
}
