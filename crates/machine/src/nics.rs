//! NICs on PCI, and what it takes to hand them to DPDK.

use crate::files::{FileError, Files};
use crate::note;
use crate::topology::PortDevice;
use serde::Serialize;

/// Network controllers by PCI's classes: 0x02 in the highest octet.
const NETWORK: u32 = 0x02;
/// NICs that are looked at: more than fit into a machine, virtual functions included.
const MOST: usize = 1024;

/// A NIC, or a function of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Nic {
    /// PCI address.
    pub address: String,
    /// PCI vendor.
    pub vendor: Option<u32>,
    /// PCI device.
    pub device: Option<u32>,
    /// What it is bound to: `ice`, `vfio-pci`; `None`: nothing.
    pub driver: Option<String>,
    /// NUMA node; `None`: not known, or the machine has one.
    pub node: Option<usize>,
    /// IOMMU group; `None`: there is no IOMMU.
    pub iommu_group: Option<String>,
    /// This process may open the group under `/dev/vfio`.
    pub group_opens: bool,
    /// Interfaces that the kernel has on it.
    pub interfaces: Vec<String>,
    /// It is a virtual function (SR-IOV).
    pub is_virtual_function: bool,
}

/// All of them, and what lies beside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Nics {
    /// By address.
    pub nics: Vec<Nic>,
    /// The machine lists its PCI devices.
    pub pci_is_listed: bool,
    /// IOMMU groups that there are.
    pub iommu_groups: usize,
    /// The module `vfio-pci` is loaded.
    pub vfio_is_loaded: bool,
    /// VFIO works without IOMMU, and without protection (`enable_unsafe_noiommu_mode`).
    pub vfio_without_iommu: bool,
}

impl Nics {
    /// Reads them below a root.
    pub fn read(files: Files<'_>, problems: &mut Vec<FileError>) -> Self {
        let folder = "sys/bus/pci/devices";
        let mut nics = Vec::new();
        for address in note(problems, files.names(folder)) {
            let is_address = matches!(address.parse(), Ok(PortDevice::Pci(_)));
            let class =
                is_address.then(|| note(problems, files.hexadecimal(&format!("{folder}/{address}/class"))));
            if class.flatten().is_some_and(|class| class >> 16 == NETWORK) && nics.len() < MOST {
                nics.push(nic(files, address, problems));
            }
        }
        let unsafe_mode = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
        Self {
            nics,
            pci_is_listed: files.exists(folder),
            iommu_groups: note(problems, files.names("sys/kernel/iommu_groups")).len(),
            vfio_is_loaded: files.exists("sys/bus/pci/drivers/vfio-pci"),
            vfio_without_iommu: note(problems, files.text(unsafe_mode)).is_some_and(|says| says == "Y"),
        }
    }

    /// One by its address.
    pub fn at(&self, address: &str) -> Option<&Nic> {
        self.nics.iter().find(|nic| nic.address == address)
    }
}

fn nic(files: Files<'_>, address: String, problems: &mut Vec<FileError>) -> Nic {
    let of = |name: &str| format!("sys/bus/pci/devices/{address}/{name}");
    let iommu_group = files.link(&of("iommu_group"));
    let opens = |group: &String| {
        let path = files.0.join("dev/vfio").join(group);
        rustix::fs::access(path, rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK).is_ok()
    };
    // virtio's network device is a device of its own below the PCI function.
    let mut interfaces = note(problems, files.names(&of("net")));
    for below in note(problems, files.names(&of(""))).iter().filter(|name| name.starts_with("virtio")) {
        interfaces.extend(note(problems, files.names(&of(&format!("{below}/net")))));
    }
    Nic {
        vendor: note(problems, files.hexadecimal(&of("vendor"))),
        device: note(problems, files.hexadecimal(&of("device"))),
        driver: files.link(&of("driver")),
        node: note(problems, files.number(&of("numa_node"))),
        group_opens: iommu_group.as_ref().is_some_and(opens),
        iommu_group,
        interfaces,
        is_virtual_function: files.exists(&of("physfn")),
        address,
    }
}
