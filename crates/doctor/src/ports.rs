//! What packets can come through: DPDK's drivers, NICs, and the kernel's sockets.

use crate::{Area, Dpdk, Finding, Program, Verdict};
use config::Driver;
use machine::Machine;
use machine::nics::Nic;
use machine::process::Capability;

/// What a kind of virtual device needs (docs/security.md).
pub(crate) const fn needs(driver: Driver) -> &'static [Capability] {
    use Capability::{IpcLock, NetAdmin, NetRaw, SysAdmin};
    match driver {
        Driver::AfPacket => &[NetRaw, NetAdmin],
        Driver::AfXdp => &[NetRaw, NetAdmin, IpcLock, SysAdmin],
        Driver::Tap => &[NetAdmin],
        Driver::Null => &[],
    }
}

/// DPDK's drivers of NICs, by the kernel's for the same ones.
const DRIVERS: [(&str, &str); 13] = [
    ("ixgbe", "net_ixgbe"),
    ("ixgbevf", "net_ixgbe"),
    ("i40e", "net_i40e"),
    ("iavf", "net_iavf"),
    ("ice", "net_ice"),
    ("virtio-pci", "net_virtio"),
    ("mlx5_core", "net_mlx5"),
    ("mlx4_core", "net_mlx4"),
    ("bnxt_en", "net_bnxt"),
    ("ena", "net_ena"),
    ("igb", "net_e1000"),
    ("igc", "net_igc"),
    ("vmxnet3", "net_vmxnet3"),
];
/// PCI vendors, and DPDK's drivers for their NICs: what is known of one that no driver of the kernel's names.
const VENDORS: [(u32, &[&str]); 2] =
    [(0x8086, &["net_ixgbe", "net_i40e", "net_iavf", "net_ice"]), (0x1af4, &["net_virtio"])];

/// What the kernel binds devices to that a program drives.
pub(crate) const FOR_PROGRAMS: [&str; 3] = ["vfio-pci", "igb_uio", "uio_pci_generic"];

pub(crate) fn examine(machine: &Machine, program: &Program, findings: &mut Vec<Finding>) {
    let add = |what: &str, found: String, reason: &str| Finding::ok(Area::Ports, what, found, reason);
    let Some(dpdk) = &program.dpdk else {
        let reason = "this build has no DPDK, and so no ports: `demo`, `bench`, `config` and `dpi` work, `run` does not";
        let remedy = "cargo build --release (with the feature `dpdk`, which is the default)";
        return findings.push(add("DPDK", "not built in".into(), reason).but(Verdict::WontWork, remedy));
    };
    let drivers = dpdk.drivers.as_ref().map_or("those of the installation".to_owned(), |drivers| {
        drivers
            .iter()
            .map(|driver| driver.strip_prefix("net_").unwrap_or(driver))
            .collect::<Vec<_>>()
            .join(" ")
    });
    findings.push(add("DPDK", dpdk.version.clone(), &format!("it has these drivers: {drivers}")));
    for driver in [Driver::AfPacket, Driver::AfXdp, Driver::Tap] {
        findings.push(kernels(machine, driver));
    }
    if !machine.nics.pci_is_listed {
        let reason = "/sys does not list PCI devices: there are none, or they can't be seen from here";
        return findings.push(add("NICs", "unknown".into(), reason));
    }
    findings.extend(machine.nics.nics.iter().map(|nic| examine_nic(machine, dpdk, nic)));
    findings.push(iommu(machine));
}

/// Ports by the kernel's sockets.
fn kernels(machine: &Machine, driver: Driver) -> Finding {
    let (name, there) = match driver {
        Driver::AfXdp => ("AF_XDP", machine.kernel.af_xdp),
        Driver::Tap => ("TAP", Some(machine.kernel.tun)),
        Driver::AfPacket | Driver::Null => ("AF_PACKET", machine.kernel.af_packet),
    };
    let needed = needs(driver);
    let add = |found: String, reason: &str| Finding::ok(Area::Ports, name, found, reason);
    if there == Some(false) {
        let (reason, remedy) = match driver {
            Driver::Tap => (
                "there is no /dev/net/tun: no TAP can be made",
                "# modprobe tun (a container: --device /dev/net/tun)",
            ),
            Driver::AfXdp => (
                "the kernel has no AF_XDP sockets",
                "a kernel with CONFIG_XDP_SOCKETS=y, or driver = \"af_packet\"",
            ),
            _ => (
                "the kernel doesn't list AF_PACKET sockets: it has none, or the module is not loaded",
                "# modprobe af_packet",
            ),
        };
        return add("not there".into(), reason).but(Verdict::CouldBeBetter, remedy);
    }
    let lacking = machine.process.lacks(needed);
    if lacking.is_empty() {
        let known = if there.is_some() && machine.process.capabilities.is_some() {
            ""
        } else {
            ", as far as is known"
        };
        return add(format!("can be opened{known}"), &format!("takes {}", listed(needed)));
    }
    let reason = format!("takes {}; this process lacks {}", listed(needed), listed(&lacking));
    add("can't be opened by this user".into(), &reason).but(Verdict::CouldBeBetter, capabilities(needed))
}

pub(crate) fn listed(capabilities: &[Capability]) -> String {
    capabilities.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ")
}

/// The command that starts it with these.
pub(crate) fn capabilities(needed: &[Capability]) -> String {
    let names: Vec<String> = needed
        .iter()
        .map(|one| format!("+{}", one.name().trim_start_matches("CAP_").to_ascii_lowercase()))
        .collect();
    let names = names.join(",");
    format!(
        "# setpriv --reuid USER --clear-groups --inh-caps {names} --ambient-caps {names} millrace run --config FILE"
    )
}

/// Whether this build drives it: by which driver, or what to say instead.
pub(crate) fn driven(dpdk: &Dpdk, nic: &Nic) -> Result<String, String> {
    let has = |name: &str| dpdk.drivers.as_ref().is_none_or(|drivers| drivers.contains(&name));
    let bound = nic.driver.as_deref().unwrap_or_default();
    if let Some((_, ours)) = DRIVERS.iter().find(|(kernels, _)| *kernels == bound) {
        return if has(ours) { Ok((*ours).into()) } else { Err(format!("this build has no {ours}")) };
    }
    let vendor = nic.vendor.unwrap_or_default();
    match VENDORS.iter().find(|(id, _)| *id == vendor) {
        Some((_, ours)) if ours.iter().any(|name| has(name)) => Ok(ours.join(" or ")),
        _ => {
            Err(format!("this build has no driver for NICs of PCI vendor {vendor:#06x}, as far as is known"))
        }
    }
}

/// What binds a NIC to VFIO.
pub(crate) fn bind(nic: &Nic) -> String {
    format!("# modprobe vfio-pci && dpdk-devbind.py --bind=vfio-pci {}", nic.address)
}

fn examine_nic(machine: &Machine, dpdk: &Dpdk, nic: &Nic) -> Finding {
    let mut parts =
        vec![nic.driver.clone().map_or("not bound".to_owned(), |driver| format!("bound to {driver}"))];
    if let (Some(vendor), Some(device)) = (nic.vendor, nic.device) {
        parts.push(format!("PCI {vendor:04x}:{device:04x}"));
    }
    parts.extend(nic.node.map(|node| format!("node {node}")));
    parts.extend(nic.is_virtual_function.then(|| "virtual function".to_owned()));
    if !nic.interfaces.is_empty() {
        parts.push(format!("interface {}", nic.interfaces.join(", ")));
    }
    let add =
        |reason: String| Finding::ok(Area::Ports, format!("NIC {}", nic.address), parts.join(", "), reason);
    let driver = match driven(dpdk, nic) {
        Ok(driver) => driver,
        Err(why) => {
            return add(format!("{why}: it can be a port by its kernel interface (driver = \"af_packet\")"));
        }
    };
    match nic.driver.as_deref() {
        Some("vfio-pci") => match opened(machine, nic) {
            Ok(how) => add(format!("device = \"{}\": DPDK drives it by {driver}{how}", nic.address)),
            Err((why, remedy)) => add(why).but(Verdict::CouldBeBetter, remedy),
        },
        Some(bound) if FOR_PROGRAMS.contains(&bound) => {
            add(format!("device = \"{}\": DPDK drives it by {driver}, as root", nic.address))
        }
        Some(_) => add(format!(
            "packets come through the kernel as long as its driver has it; DPDK could drive it by {driver}. Leave it if it is what you log \
             in by: its interface vanishes"
        ))
        .but(Verdict::CouldBeBetter, bind(nic)),
        None => add(format!("nobody drives it; DPDK could by {driver}")).but(Verdict::CouldBeBetter, bind(nic)),
    }
}

/// Whether this process can open a NIC that VFIO has: how, or why not and what to do.
pub(crate) fn opened(machine: &Machine, nic: &Nic) -> Result<&'static str, (String, String)> {
    let Some(group) = &nic.iommu_group else {
        return if machine.nics.vfio_without_iommu {
            Ok(", without the protection of an IOMMU")
        } else {
            let why = "it is bound to VFIO, but there is no IOMMU, so it can't be opened".to_owned();
            Err((why, IOMMU.to_owned()))
        };
    };
    if nic.group_opens {
        return Ok("");
    }
    let why = format!("this user may not open /dev/vfio/{group}, so DPDK can't drive it");
    Err((why, format!("# chown USER /dev/vfio/{group}")))
}

/// What switches an IOMMU on.
const IOMMU: &str = "switch VT-d or AMD-Vi on in the firmware and, with Intel, put intel_iommu=on iommu=pt on the kernel's \
                     command line\na virtual machine without one: # echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

fn iommu(machine: &Machine) -> Finding {
    let nics = &machine.nics;
    let add = |found: String, reason: &str| Finding::ok(Area::Ports, "IOMMU", found, reason);
    let loaded = if nics.vfio_is_loaded { "vfio-pci is loaded" } else { "vfio-pci is not loaded" };
    if nics.iommu_groups > 0 {
        return add(
            format!("{} groups; {loaded}", nics.iommu_groups),
            "NICs by VFIO reach packet buffers only",
        );
    }
    let found = if nics.vfio_without_iommu {
        format!("none, and VFIO works without; {loaded}")
    } else {
        format!("none; {loaded}")
    };
    let reason =
        "NICs by VFIO need one, or a mode of VFIO that protects nothing; ports by the kernel need none";
    if nics.nics.is_empty() || nics.vfio_without_iommu {
        return add(found, reason);
    }
    add(found, reason).but(Verdict::CouldBeBetter, IOMMU)
}
