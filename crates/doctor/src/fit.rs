//! Whether a configuration fits the machine.

use crate::ports::{FOR_PROGRAMS, bind, capabilities, driven, listed, needs, opened};
use crate::{Area, Finding, Program, Verdict, size};
use config::{Config, DeviceName, Driver, Memory, Port};
use machine::Machine;
use machine::process::Capability;
use machine::topology::PortDevice;

pub(crate) fn examine(machine: &Machine, program: &Program, config: &Config, findings: &mut Vec<Finding>) {
    for port in &config.ports {
        let members = port.bond.as_ref().map_or(std::slice::from_ref(&port.device), |bond| &bond.members);
        for device in members {
            findings.push(examine_port(machine, program, config, port, device));
        }
    }
    findings.push(memory(machine, config));
    workers(machine, program, config, findings);
    n4(machine, config, findings);
    addresses(machine, config, findings);
}

fn finding(what: impl Into<String>, found: impl Into<String>, reason: impl Into<String>) -> Finding {
    Finding::ok(Area::Configuration, what, found, reason)
}

/// A device of a port.
fn examine_port(
    machine: &Machine,
    program: &Program,
    config: &Config,
    port: &Port,
    device: &DeviceName,
) -> Finding {
    let add = |reason: String| finding(format!("port {}", port.name), device.to_string(), reason);
    // Without DPDK nothing works, and that has been said.
    let Some(dpdk) = &program.dpdk else {
        return add("ports need DPDK".into()).but(Verdict::WontWork, "a build with DPDK");
    };
    let DeviceName::Vdev { name, .. } = device else {
        return pci(machine, dpdk, config, &device.to_string(), add);
    };
    let kind = [Driver::AfPacket, Driver::AfXdp, Driver::Tap, Driver::Null];
    let driver = kind.into_iter().find(|driver| name.starts_with(driver.dpdk_name()));
    let known = |drivers: &Vec<&str>| drivers.iter().any(|driver| name.starts_with(driver));
    if driver.is_none() && !dpdk.drivers.as_ref().is_none_or(known) {
        let drivers = dpdk.drivers.iter().flatten().copied().collect::<Vec<_>>().join(" ");
        return add("this build has no driver of that name".into())
            .but(Verdict::WontWork, format!("one of these: {drivers}"));
    }
    let Some(driver) = driver else { return add("a virtual device whose needs are not known here".into()) };
    let lacking = machine.process.lacks(needs(driver));
    if !lacking.is_empty() {
        let reason = format!("this process lacks {}", listed(&lacking));
        return add(reason).but(Verdict::WontWork, capabilities(needs(driver)));
    }
    match driver {
        Driver::Null => add("a device that swallows what it is given, for measurements".into()),
        Driver::Tap if !machine.kernel.tun => {
            let remedy = "# modprobe tun (a container: --device /dev/net/tun)";
            add("there is no /dev/net/tun".into()).but(Verdict::WontWork, remedy)
        }
        Driver::Tap => add("it is made at the start".into()),
        Driver::AfXdp if machine.kernel.af_xdp == Some(false) => {
            add("the kernel has no AF_XDP sockets".into()).but(Verdict::WontWork, "driver = \"af_packet\"")
        }
        Driver::AfPacket | Driver::AfXdp => interface(machine, program, port, device, add),
    }
}

/// A port on a kernel interface.
fn interface(
    machine: &Machine,
    program: &Program,
    port: &Port,
    device: &DeviceName,
    add: impl Fn(String) -> Finding,
) -> Finding {
    let Some(PortDevice::Interface(name)) = upf::cores::kernel_device(device) else {
        return add("no interface is named".into()).but(Verdict::WontWork, "iface = \"NAME\"");
    };
    let Some(there) = machine.interfaces.iter().find(|interface| interface.name == name) else {
        let names: Vec<&str> = machine.interfaces.iter().map(|interface| interface.name.as_str()).collect();
        if names.is_empty() && machine.topology.is_none() {
            return add(
                "the kernel's interfaces can't be seen from here: whether it exists is not known".into()
            );
        }
        let reason = format!("this network namespace has no interface {name}; it has: {}", names.join(" "));
        return add(reason)
            .but(Verdict::WontWork, format!("ip link; iface = \"…\", or # ip link set {name} netns …"));
    };
    if let Some(mtu) = there.mtu.filter(|mtu| *mtu < u64::from(port.mtu)) {
        let reason = format!("the interface carries an MTU of {mtu}, the port has {}", port.mtu);
        return add(reason).but(Verdict::WontWork, format!("# ip link set {name} mtu {}", port.mtu));
    }
    if !there.is_up {
        let reason = "the interface is not set up: no packet passes until it is".to_owned();
        return add(reason).but(Verdict::CouldBeBetter, format!("# ip link set {name} up"));
    }
    match (program.remarks)(&name).first() {
        Some(remark) => {
            let (reason, remedy) = remark.rsplit_once(": ").unwrap_or((remark, "docs/ports.md"));
            add(reason.to_owned()).but(Verdict::CouldBeBetter, format!("# {remedy}"))
        }
        None => add(format!("the interface is there and {}", there.state)),
    }
}

/// A port on a NIC.
fn pci(
    machine: &Machine,
    dpdk: &crate::Dpdk,
    config: &Config,
    address: &str,
    add: impl Fn(String) -> Finding,
) -> Finding {
    let wrong = |reason: String, remedy: String| add(reason).but(Verdict::WontWork, remedy);
    let Some(nic) = machine.nics.at(address) else {
        if !machine.nics.pci_is_listed {
            return add("PCI devices can't be seen from here: whether it exists is not known".into());
        }
        let nics: Vec<&str> = machine.nics.nics.iter().map(|nic| nic.address.as_str()).collect();
        let nics = if nics.is_empty() { "none".into() } else { nics.join(" ") };
        return wrong(
            format!("there is no NIC at this address; there are: {nics}"),
            "dpdk-devbind.py --status".into(),
        );
    };
    let driver = match driven(dpdk, nic) {
        Ok(driver) => driver,
        Err(why) => {
            let interface = nic.interfaces.first().map_or("…", String::as_str);
            return wrong(why, format!("driver = \"af_packet\" with iface = \"{interface}\""));
        }
    };
    match nic.driver.as_deref() {
        Some("vfio-pci") => {}
        Some(bound) if FOR_PROGRAMS.contains(&bound) => {
            return add(format!("bound to {bound}; DPDK drives it by {driver}, as root"));
        }
        Some(bound) => return wrong(format!("the kernel's driver {bound} has it"), bind(nic)),
        None => return wrong("it is bound to no driver".into(), bind(nic)),
    }
    if let Err((why, remedy)) = opened(machine, nic) {
        return wrong(why, remedy);
    }
    let (need, limit) = (upf::needs::buffer_bytes(config), machine.process.locked_memory.unwrap_or(u64::MAX));
    let may_lock = machine.process.lacks(&[Capability::IpcLock]).is_empty();
    if limit < need && !may_lock {
        let reason = format!(
            "its packet buffers have to be locked: {}, and this user may lock {}",
            size(need),
            size(limit)
        );
        return wrong(reason, "# ulimit -l unlimited (a service: LimitMEMLOCK=infinity)".into());
    }
    add(format!("bound to vfio-pci; DPDK drives it by {driver}"))
}

fn memory(machine: &Machine, config: &Config) -> Finding {
    let (need, free) = (upf::needs::buffer_bytes(config), machine.memory.free_huge());
    let (setting, huge) = match config.memory {
        Memory::HugePages => ("memory = \"huge-pages\"", true),
        Memory::NoHuge => ("memory = \"no-huge\"", false),
        Memory::Auto => ("memory = \"auto\"", need <= free),
    };
    let pages = if huge { "huge pages" } else { "ordinary pages" };
    let add = |reason: String| finding("packet memory", format!("{} in {pages}", size(need)), reason);
    if config.memory == Memory::HugePages && need > free {
        let remedy = format!("# sysctl -w vm.nr_hugepages={}", need.div_ceil(2 << 20));
        let reason = format!("{setting}, and {} of huge pages are free", size(free));
        return add(reason).but(Verdict::WontWork, remedy);
    }
    let exceeds = machine.memory.room.as_ref().and_then(|room| upf::needs::exceeds(config, room));
    match exceeds {
        Some((_, wrong)) => add(wrong.to_string()).but(Verdict::WontWork, wrong.help().unwrap_or_default()),
        None => add(format!("{setting}; {} of huge pages are free", size(free))),
    }
}

fn workers(machine: &Machine, program: &Program, config: &Config, findings: &mut Vec<Finding>) {
    let count = format!("{}", config.workers.workers());
    let add = |reason: String| finding("workers", count.clone(), reason);
    let placed = match upf::cores::place_on(config, &machine.root.join("sys"), program.pinnable) {
        Ok(placed) => placed,
        Err(refused) => {
            let remedy = "fewer workers, or [workers] pin = \"auto\"";
            return findings.push(add(refused.to_string()).but(Verdict::WontWork, remedy));
        }
    };
    let reason =
        if placed.reasons.is_empty() { "placed as configured".to_owned() } else { placed.reasons.join("; ") };
    findings.push(add(reason));
    let pinned: Vec<usize> = placed.cores.iter().flatten().copied().collect();
    let usable = (program.pinnable)(pinned.clone());
    if let Some(core) = pinned.iter().find(|core| !usable.contains(core)) {
        let reason = format!("core {core} is not online, or not allowed to this process");
        findings.push(add(reason).but(
            Verdict::WontWork,
            "[workers] cores = [ … ] with cores of: $ nproc --all; cat /sys/fs/cgroup/cpuset.cpus.effective",
        ));
    }
    for warning in &placed.warnings {
        use machine::topology::Warning::{FarPort, Governor, NotIsolated, NotOnline, SharedPhysicalCore};
        let remedy = match warning {
            // It has been said, and that it won't work.
            NotOnline { .. } => continue,
            FarPort { port_node, .. } => format!(
                "[workers] cores of node {port_node}: $ cat /sys/devices/system/node/node{port_node}/cpulist"
            ),
            SharedPhysicalCore { .. } => {
                "[workers] cores with one of each physical core: $ lscpu --extended=CPU,CORE".into()
            }
            NotIsolated { core, .. } => {
                format!("on the kernel's command line: isolcpus={core} nohz_full={core} rcu_nocbs={core}")
            }
            Governor { core, .. } => {
                format!("# echo performance > /sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor")
            }
        };
        findings.push(add(warning.to_string()).but(Verdict::CouldBeBetter, remedy));
    }
}

/// Where N4 listens.
fn n4(machine: &Machine, config: &Config, findings: &mut Vec<Finding>) {
    let listen = config.n4.listen;
    let add = |reason: String| finding("N4", listen.to_string(), reason);
    let first = machine.kernel.unprivileged_port_start.unwrap_or(1024);
    if u64::from(listen.port()) < first && !machine.process.lacks(&[Capability::NetBindService]).is_empty() {
        let reason = format!("ports below {first} take {}", Capability::NetBindService);
        return findings.push(add(reason).but(Verdict::WontWork, "n4.listen on port 8805"));
    }
    let ours = upf::kernel::addresses(&proc_net(machine));
    let address = listen.ip();
    if ours.is_empty() || address.is_unspecified() || address.is_loopback() || ours.contains(&address) {
        return findings.push(add("it can be listened on".into()));
    }
    let reason = "this network namespace has no such address".to_owned();
    findings.push(add(reason).but(
        Verdict::WontWork,
        format!("ip -br address; n4.listen, or # ip address add {address}/PREFIX dev …"),
    ));
}

/// Addresses that the kernel has, too.
fn addresses(machine: &Machine, config: &Config, findings: &mut Vec<Finding>) {
    for address in upf::kernel::shared_addresses(config, &proc_net(machine)) {
        let reason = "the kernel has it too, and answers packets to it: each G-PDU with an ICMP error";
        let remedy = format!("ip address show to {address}; # ip address del {address}/PREFIX dev …");
        findings.push(finding("address", address.to_string(), reason).but(Verdict::CouldBeBetter, remedy));
    }
}

fn proc_net(machine: &Machine) -> std::path::PathBuf {
    machine.root.join(upf::kernel::PROC_NET.trim_start_matches('/'))
}
