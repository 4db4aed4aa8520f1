//! A DPDK Ethernet device as a [`Port`].

use crate::af_packet::{self, Interface};
use crate::bond::{self, Bond, Bonded, Pump, Turn};
use crate::device::{Device, raw_info};
use crate::eal::{Eal, ThreadGuard, alone, is_pci, libc_errno, take_log};
use crate::error::{DpdkError, cause};
use crate::ffi::{self, PortConfig, RawPortInfo, RawStats};
use crate::flow::RteFlow;
use crate::mbuf::{Mbuf, MempoolPool};
use crate::pool::PoolHandle;
use crate::queue::{DpdkRx, DpdkTx};
use crate::running::{Installed, Running};
use crate::spread::{Spread, Spreading};
use crate::steer::{self, Steered, Stopped};
use io::offload::FlowOffload;
use io::redirection::Redirection;
use io::steering::{Duty, Steering};
use io::{Member, Port, PortInfo, PortStats};
use packet::MacAddr;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A device and how to set it up.
#[derive(Clone, Debug)]
pub struct DeviceSpec {
    /// The port's name in Millrace.
    pub name: String,
    /// A PCI address (`0000:03:00.0`) or a DPDK virtual device with its arguments (`net_af_packet0,iface=eth1`).
    pub device: String,
    /// Pairs of receive and transmit queues.
    pub queues: u16,
    /// What the device is asked to choose ahead of RSS, with receive queues beside the pairs. What it does of that is in
    /// [`Port::steering`] and among [`Port::remarks`].
    pub steering: Steering,
    /// Whether frames with a VLAN tag arrive that are to be steered, too.
    pub tagged: bool,
    /// Entries per receive queue; rounded to what the device can. With `net_af_packet` the slots of both rings.
    pub rx_descriptors: u16,
    /// Entries per transmit queue; rounded to what the device can.
    pub tx_descriptors: u16,
    /// Largest layer-3 packet.
    pub mtu: u16,
    /// Whether frames for other MAC addresses are received too.
    pub promiscuous: bool,
    /// With `net_af_packet`: whether what this machine itself sends by the interface is received, too, as an observer wants it.
    pub sent_too: bool,
    /// The devices behind an aggregated port, whose own `device` is `net_bonding` and a number; `None`: `device` is one.
    pub bond: Option<Bond>,
    /// Packet buffers; by default enough for the descriptors, the threads' caches and 4,096 packets held elsewhere.
    pub frames: Option<u32>,
}

impl DeviceSpec {
    /// A device with one queue pair of 1,024 entries and an MTU of 1,500.
    pub fn new(name: &str, device: &str) -> Self {
        Self {
            name: name.into(),
            device: device.into(),
            queues: 1,
            steering: Steering::default(),
            tagged: false,
            rx_descriptors: 1024,
            tx_descriptors: 1024,
            mtu: 1500,
            promiscuous: true,
            sent_too: false,
            bond: None,
            frames: None,
        }
    }

    /// The devices that are opened: the members of an aggregated port, or the one.
    fn devices(&self) -> Vec<Self> {
        let members = self.bond.as_ref().map_or(std::slice::from_ref(&self.device), |bond| &bond.members);
        let spec = |device: &String| Self { device: device.clone(), bond: None, ..self.clone() };
        members.iter().map(spec).collect()
    }

    /// What DPDK knows the device by: the part before the first comma.
    fn id(&self) -> &str {
        self.device.split(',').next().unwrap_or_default()
    }

    fn argument(&self, key: &str) -> Option<&str> {
        self.device.split(',').skip(1).find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    }

    /// The device string, completed by arguments that follow from the other fields.
    fn devargs(&self) -> String {
        let mut devargs = self.device.clone();
        let mut add = |key: &str, value: usize| {
            if self.argument(key).is_none() {
                devargs.push(',');
                devargs.push_str(key);
                devargs.push('=');
                devargs.push_str(&value.to_string());
            }
        };
        let id = self.id();
        if af_packet::drives(id) {
            if self.queues > 1 {
                add("qpairs", usize::from(self.queues));
            }
            // Who lays out a ring by hand lays out all of it.
            if !af_packet::RING.iter().any(|key| self.argument(key).is_some()) {
                let ring = af_packet::ring(self.room(), self.rx_descriptors);
                af_packet::RING.iter().zip(ring).for_each(|(key, value)| add(key, value));
            }
        } else if id.starts_with("net_af_xdp") && self.queues > 1 {
            add("queue_count", usize::from(self.queues));
        }
        devargs
    }

    /// The kernel interface behind a virtual device, if it names one that exists.
    fn interface(&self) -> Option<Interface> {
        let kernel = af_packet::drives(self.id()) || self.id().starts_with("net_af_xdp");
        Interface::look(self.argument("iface").filter(|_| kernel)?)
    }

    /// Buffer room for a packet: the frame with two VLAN tags and 128 bytes more, in the whole KiB that some NICs want.
    pub(crate) fn room(&self) -> u16 {
        let frame = u32::from(self.mtu) + 14 + 8 + 128;
        u16::try_from(frame.next_multiple_of(1024).max(2048)).unwrap_or(u16::MAX - 1023)
    }

    fn frames(&self) -> u32 {
        let descriptors = u32::from(self.rx_descriptors) + u32::from(self.tx_descriptors);
        let steered = self.steering.extra_queues(self.queues) as u32;
        let wanted = u64::from(self.queues) * u64::from(descriptors + 512)
            + u64::from(steered) * u64::from(self.rx_descriptors)
            + 4096;
        // A ring of 2^n slots holds 2^n - 1.
        self.frames.unwrap_or_else(|| u32::try_from(wanted.next_power_of_two() - 1).unwrap_or(u32::MAX))
    }
}

/// A configured and started DPDK port.
#[derive(Debug)]
pub struct DpdkPort {
    info: PortInfo,
    device: Arc<Device>,
    pool: PoolHandle,
    /// Of all receive queues, in the order of [`Steering::place`].
    taken: Vec<bool>,
    spreading: Spreading,
    steered: Steered<Installed>,
    /// DPDK's numbers of all ports, in the order of the configuration.
    ports: Arc<[u16]>,
    warnings: Vec<String>,
}

impl DpdkPort {
    /// Attaches, configures and starts a device, or several as one port.
    pub fn open(eal: &Eal, spec: &DeviceSpec) -> Result<Self, DpdkError> {
        if let Some(bond) = &spec.bond {
            bond::check(spec.id(), bond)?;
        }
        let devices = spec.devices();
        let mut warnings = Vec::new();
        for device in &devices {
            let id = device.id();
            if !(is_pci(id) || id.starts_with("net_") || id.starts_with("eth_")) {
                return Err(DpdkError::Device(device.device.clone()));
            }
            let Some(interface) = device.interface() else { continue };
            if interface.mtu < spec.mtu {
                let (device, wanted, most) = (device.device.clone(), spec.mtu, interface.mtu);
                return Err(DpdkError::Mtu { device, wanted, least: 68, most });
            }
            if af_packet::drives(id) {
                warnings.extend(interface.warnings());
            }
        }
        // The device may be closed again, but not by what talks to it alone: closing does so, too.
        let attached = alone(|| Attached::new(eal, spec, &devices))?;
        let port = alone(|| attached.start(spec))?;
        Ok(Self { warnings, ..port })
    }

    /// What about the kernel's interfaces behind the port will cost packets, and what to do about it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Lets rules on each of these ports forward to any of them, by their place here.
    pub fn connect(ports: &mut [Self]) {
        let numbers: Arc<[u16]> = ports.iter().map(|port| port.device.port).collect();
        for port in ports {
            port.ports = Arc::clone(&numbers);
        }
    }

    /// The flow table of the device behind the port, after asking it what it can.
    pub fn flows(&self) -> RteFlow {
        RteFlow::new(Arc::clone(&self.device), Arc::clone(&self.ports))
    }

    /// How the device spreads packets over receive queues.
    pub fn spread(&self) -> &Spread {
        &self.spreading.spread
    }

    /// The receive queue that each entry of the device's redirection table names; empty: it has none that can be set.
    pub fn redirection_table(&self) -> Vec<u16> {
        self.spreading.table(&self.device)
    }

    /// Packet buffers in queues, caches excluded, and in packets.
    pub fn frames_in_use(&self) -> u32 {
        self.pool.in_use()
    }

    /// The link's speed in Mbit/s; `None` if down or unknown.
    pub fn link_mbps(&self) -> Option<u32> {
        let (up, mbps) = self.link();
        (up && mbps != u32::MAX && mbps != 0).then_some(mbps)
    }

    /// Registers the calling worker thread; see [`Eal::register_thread`].
    pub fn register_thread(&self) -> Result<ThreadGuard, DpdkError> {
        self.device.eal.register_thread()
    }

    fn link(&self) -> (bool, u32) {
        let mut mbps = 0;
        // SAFETY: the port is open.
        let up = unsafe { ffi::mr_port_link(self.device.port, &raw mut mbps) } != 0;
        (up, mbps)
    }
}

/// A device that is ready to be started.
struct Attached {
    device: Arc<Device>,
    pool: PoolHandle,
    config: PortConfig,
    raw: RawPortInfo,
}

impl Attached {
    fn new(eal: &Eal, spec: &DeviceSpec, devices: &[DeviceSpec]) -> Result<Self, DpdkError> {
        // From here on an early return closes the ports again.
        let mut started = Started(Vec::new());
        for device in devices {
            started.0.push(attach(device)?);
        }
        let bonded = match &spec.bond {
            Some(bond) => Some(aggregate(spec, bond, &mut started)?),
            None => None,
        };
        let port = started.0.last().copied().unwrap_or_default();
        let raw = raw_info(port).map_err(|errno| failed(spec, "asking for its capabilities", errno))?;
        let available = raw.max_rx_queues.min(raw.max_tx_queues);
        if spec.queues == 0 || spec.queues > available {
            return Err(DpdkError::Queues { device: spec.device.clone(), wanted: spec.queues, available });
        }
        let virtual_device = !devices.iter().any(|device| is_pci(device.id()));
        let most = greatest_mtu(&raw);
        if !virtual_device && !(raw.min_mtu..=most).contains(&spec.mtu) {
            let (wanted, least) = (spec.mtu, raw.min_mtu);
            return Err(DpdkError::Mtu { device: spec.device.clone(), wanted, least, most });
        }
        let pool = PoolHandle::create(eal, spec.frames(), spec.room(), raw.socket)?;
        let config = PortConfig {
            queues: spec.queues,
            rx_queues: spec.queues,
            rx_descriptors: spec.rx_descriptors,
            tx_descriptors: spec.tx_descriptors,
            mtu: spec.mtu,
            promiscuous: u8::from(spec.promiscuous),
            // Several virtual devices report 1,500 whatever they carry.
            mtu_by_kernel: u8::from(virtual_device && spec.mtu > most),
        };
        started.0.clear();
        // It closes the ports, and only then gives up the pool whose buffers are in their queues.
        let device = Arc::new(Device {
            port,
            rx_descriptors: config.rx_descriptors,
            tx_descriptors: config.tx_descriptors,
            hardware: !virtual_device,
            bonded,
            chained_lost: AtomicU64::new(0),
            _pool: pool.clone(),
            eal: eal.clone(),
        });
        Ok(Self { device, pool, config, raw })
    }

    /// Starts it with the queues that it is to have.
    fn start(&self, spec: &DeviceSpec) -> Result<DpdkPort, DpdkError> {
        let stopped = |Stopped { step, errno }| failed(spec, &step, errno);
        let mut running = Running::start(&self.device, &self.pool, self.config).map_err(stopped)?;
        let receive = usize::from(spec.queues) + spec.steering.extra_queues(spec.queues);
        let steered = if spec.steering.is_none() {
            Steered::nothing(None)
        } else if receive > usize::from(self.raw.max_rx_queues) {
            let has = self.raw.max_rx_queues;
            Steered::nothing(Some(&format!("that takes {receive} receive queues, it has {has}")))
        } else {
            steer::ask(&mut running, &spec.steering, spec.queues, spec.tagged).map_err(stopped)?
        };
        // The MAC address of some devices is known only now.
        let raw = raw_info(self.device.port).unwrap_or(self.raw);
        if let Some(bonded) = &self.device.bonded {
            bond::one_system(&spec.device, bonded, raw.mac)?;
            bonded.watch().map_err(|errno| failed(spec, "watching its members", errno))?;
        }
        let driver = raw.driver.split(|&byte| byte == 0).next().unwrap_or_default();
        let info = PortInfo {
            name: spec.name.clone(),
            mac: MacAddr(raw.mac),
            mtu: spec.mtu,
            queues: spec.queues,
            driver: String::from_utf8_lossy(driver).into_owned(),
        };
        let receive = usize::from(spec.queues) + steered.steering.extra_queues(spec.queues);
        let (taken, spreading) = (vec![false; receive], running.into_spreading());
        let (device, pool) = (Arc::clone(&self.device), self.pool.clone());
        let (ports, warnings) = (Arc::default(), Vec::new());
        Ok(DpdkPort { info, device, pool, taken, spreading, steered, ports, warnings })
    }
}

/// Ports that were attached but didn't get as far as a [`Device`]: closes them, the last first.
struct Started(Vec<u16>);

impl Drop for Started {
    fn drop(&mut self) {
        for port in self.0.drain(..).rev() {
            // SAFETY: attached by us, never polled.
            unsafe { ffi::mr_port_close(port) };
        }
    }
}

/// Plugs one device in.
fn attach(spec: &DeviceSpec) -> Result<u16, DpdkError> {
    let text = |text: &str| CString::new(text).map_err(|_| DpdkError::Device(spec.device.clone()));
    let (devargs, name) = (text(&spec.devargs())?, text(spec.id())?);
    let mut port = 0;
    // SAFETY: a plain call, and no other port is being made meanwhile.
    unsafe { ffi::mr_rings_sent_too(spec.sent_too.into()) };
    // SAFETY: C strings; EAL runs.
    let errno = unsafe { ffi::mr_port_probe(devargs.as_ptr(), name.as_ptr(), &raw mut port) };
    if errno == 0 {
        return Ok(port);
    }
    Err(DpdkError::Probe {
        device: spec.device.clone(),
        // Drivers that fail with a bare -1 don't mean EPERM by it.
        cause: if errno == libc_errno::EPERM { "its driver refused".into() } else { cause(errno) },
        remedy: probe_remedy(errno, spec),
        log: take_log(),
    })
}

/// Makes one port of those that were attached, and adds it to them.
fn aggregate(spec: &DeviceSpec, bond: &Bond, started: &mut Started) -> Result<Bonded, DpdkError> {
    let members = started.0.clone();
    let name = CString::new(spec.id()).map_err(|_| DpdkError::Device(spec.device.clone()))?;
    let socket = members.first().and_then(|&port| raw_info(port).ok()).map_or(0, |raw| raw.socket);
    let descriptors = u32::from(spec.queues) * u32::from(spec.tx_descriptors);
    bond::create(&name, bond, &members, descriptors, socket, |port| started.0.push(port))
        .map_err(|(step, errno)| failed(spec, &step, errno))
}

/// What DPDK will accept: the least of its two limits.
fn greatest_mtu(raw: &RawPortInfo) -> u16 {
    let overhead = if raw.max_mtu != u16::MAX && u32::from(raw.max_mtu) < raw.max_rx_pktlen {
        raw.max_rx_pktlen - u32::from(raw.max_mtu)
    } else {
        18
    };
    let by_length = u16::try_from(raw.max_rx_pktlen.saturating_sub(overhead)).unwrap_or(u16::MAX);
    if raw.max_rx_pktlen == 0 { raw.max_mtu } else { by_length.min(raw.max_mtu) }
}

fn probe_remedy(errno: i32, spec: &DeviceSpec) -> &'static str {
    let pci = is_pci(spec.id());
    match errno {
        libc_errno::EACCES => " It needs root, or CAP_NET_RAW and CAP_NET_ADMIN.",
        libc_errno::EBUSY => " Another process has it.",
        _ if pci => {
            " Is it bound to vfio-pci (dpdk-devbind.py --status), and is an IOMMU on? Its driver may not be among \
             those linked in (DPDK_LINK=dynamic has all)."
        }
        _ if spec.argument("iface").is_some() => {
            " Does the interface exist in this network namespace (ip link), and may this user open it (root, or \
             CAP_NET_RAW and CAP_NET_ADMIN)?"
        }
        _ => " Check the device's arguments, and whether it needs root.",
    }
}

fn failed(spec: &DeviceSpec, step: &str, errno: i32) -> DpdkError {
    let remedy = match errno {
        libc_errno::EPERM | libc_errno::EACCES => " It needs root, or CAP_NET_RAW and CAP_NET_ADMIN.",
        libc_errno::ENOMEM => " Fewer descriptors or queues, or more memory for DPDK.",
        libc_errno::EINVAL => " Check queues, descriptors and MTU against the device's limits.",
        libc_errno::EBUSY => " Another process has it.",
        _ => "",
    };
    DpdkError::Port {
        device: spec.device.clone(),
        step: step.into(),
        cause: cause(errno),
        remedy,
        log: take_log(),
    }
}

impl Port for DpdkPort {
    type Frame = Mbuf;
    type Rx = DpdkRx;
    type Tx = DpdkTx;
    type Pool = MempoolPool;

    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn take_queue(&mut self, queue: u16) -> Option<(DpdkRx, DpdkTx)> {
        let pairs = self.taken.get_mut(..usize::from(self.info.queues))?;
        let taken = pairs.get_mut(usize::from(queue))?;
        if std::mem::replace(taken, true) {
            return None;
        }
        let device = Arc::clone(&self.device);
        let calls = device.bonded.as_ref().is_some_and(Bonded::wants_calls);
        let turn = (calls && queue == 0).then(Turn::default);
        let pump = turn.clone().map(Pump::new);
        Some((DpdkRx::new(Arc::clone(&device), queue, pump), DpdkTx::new(device, queue, turn)))
    }

    fn steering(&self) -> Option<&Steering> {
        (!self.steered.steering.is_none()).then_some(&self.steered.steering)
    }

    fn take_steered(&mut self, duty: Duty, queue: u16) -> Option<DpdkRx> {
        let (steering, queues) = (&self.steered.steering, self.info.queues);
        let exists = match duty {
            Duty::Control => queue == 0 && steering.control().is_some(),
            Duty::Group(group) => queue < queues && usize::from(group) < steering.groups().len(),
        };
        let place = steering.place(Some(duty), usize::from(queue), queues);
        let taken = self.taken.get_mut(place).filter(|_| exists)?;
        let free = !std::mem::replace(taken, true);
        free.then(|| DpdkRx::new(Arc::clone(&self.device), place as u16, None))
    }

    fn pool(&mut self, _queue: u16) -> MempoolPool {
        MempoolPool { pool: self.pool.clone() }
    }

    fn frames(&self) -> Option<usize> {
        Some(self.pool.frames() as usize)
    }

    fn link_up(&self) -> bool {
        self.link().0
    }

    fn redirection(&mut self) -> Option<Box<dyn Redirection>> {
        self.spreading.redirection(&self.device, self.info.queues)
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.spreading.remarks();
        remarks.extend(self.steered.remarks().iter().cloned());
        remarks
    }

    fn members(&self) -> Vec<Member> {
        self.device.bonded.as_ref().map(Bonded::look).unwrap_or_default()
    }

    fn offload(&mut self) -> Box<dyn FlowOffload> {
        Box::new(self.flows())
    }

    fn stats(&self) -> PortStats {
        let mut raw = RawStats::default();
        // SAFETY: the port is open; room for one struct.
        if unsafe { ffi::mr_port_stats(self.device.port, &raw mut raw) } != 0 {
            return PortStats::default();
        }
        let chained = self.device.chained_lost.load(Ordering::Relaxed);
        let lost = self.device.lost();
        PortStats {
            rx_packets: raw.rx_packets - chained.min(raw.rx_packets),
            rx_bytes: raw.rx_bytes,
            rx_missed: raw.rx_missed + lost.missed,
            rx_errors: raw.rx_errors + chained + lost.cut,
            tx_packets: raw.tx_packets,
            tx_bytes: raw.tx_bytes,
            tx_errors: raw.tx_errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pci_addresses_are_told_from_names() {
        for device in ["0000:03:00.0", "03:00.1", "0000:af:00.0,flow=1"] {
            assert!(is_pci(device), "{device}");
        }
        for device in ["net_af_packet0,iface=a:b.c", "", "eth1", "::.", "0000:03:00.0.1", "net_tap0"] {
            assert!(!is_pci(device), "{device}");
        }
    }

    #[test]
    fn arguments_follow_from_the_other_fields() {
        let mut spec = DeviceSpec::new("n3", "net_af_packet0,iface=veth0");
        let expected = "net_af_packet0,iface=veth0,framesz=2048,blocksz=8192,framecnt=1024";
        assert_eq!(spec.devargs(), expected);
        spec.queues = 2;
        spec.mtu = 9000;
        spec.rx_descriptors = 255;
        let expected = "net_af_packet0,iface=veth0,qpairs=2,framesz=9216,blocksz=36864,framecnt=256";
        assert_eq!(spec.devargs(), expected);
        spec.device.push_str(",framesz=32768");
        assert_eq!(spec.devargs(), "net_af_packet0,iface=veth0,framesz=32768,qpairs=2");
        assert_eq!(spec.argument("iface"), Some("veth0"));
        assert_eq!((spec.room(), DeviceSpec::new("a", "b").room()), (9216, 2048));
    }
}
