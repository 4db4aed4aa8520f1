//! Link aggregation: several devices as one port, by DPDK's bonding driver.
//!
//! **The problem.** A cable is pulled, a switch restarts, a port is too slow alone. Two or more devices that are one port go on
//! with what is left of them, and carry more than one of them could.
//!
//! **The model.** A [`Bond`] names its members and how they work together ([`Mode`]); the port made of them has one MAC address,
//! queues like any other, and the sum of its members' counters. Queue `q` of the port is queue `q` of each member. Each
//! member's link is looked at every [`POLL_MS`], and a member whose link is down is left out. Which ones carry packets is in
//! [`io::Member`].
//!
//! LACP (IEEE 802.1AX) finds out more: whether the other end agrees, and whether it still answers. The driver's part of
//! that happens within receive and transmit calls, 10 times a second at least; a worker that has nothing to send makes none. So the
//! receive half of queue 0 makes the transmit call in its place every [`PUMP`], and a flag that it shares with the transmit
//! half keeps the two apart, for they may be on different threads. A partner that falls silent is given up after 3 seconds, or
//! after 90 ([`Timeout`]).
//!
//! **The cost.** The driver's own: a look-up of the active members per burst, and per packet a hash of its headers where
//! packets are spread by it. For LACP two uncontended atomic operations per transmit burst more, and with a short timeout a look at
//! each packet's type.
//!
//! **When not to use it.** For kernel interfaces: `net_af_packet` and `net_af_xdp` never report a link that is down, so that
//! only LACP notices, and slowly. Let the kernel bond them (`ip link add bond0 type bond`) and open the bond.

use crate::error::DpdkError;
pub use crate::ffi::MAX_MEMBERS;
use crate::ffi::{self, BondConfig, RawMember};
use io::Member;
use packet::MacAddr;
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tables::Nanos;
use tables::clock::Tsc;

/// Between two looks at a member's link, in milliseconds.
pub const POLL_MS: u16 = 10;
/// Between two transmit calls for LACP's sake. The driver wants one every 100 ms.
pub const PUMP: Duration = Duration::from_millis(20);

const PUMP_NANOS: u64 = PUMP.as_nanos() as u64;

/// How the members work together; the codes are DPDK's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Static: packet by packet in turn. Reorders flows.
    RoundRobin = 0,
    /// One carries everything, the others wait for its link to go down.
    ActiveBackup = 1,
    /// Static: by a hash of the headers, so that a flow stays on one member.
    Balance = 2,
    /// As [`Mode::Balance`], over the members that LACP agrees upon with the other end.
    Lacp = 4,
}

/// What is hashed to choose a member for sending; the codes are DPDK's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Transmit {
    /// MAC addresses.
    L2 = 0,
    /// MAC and IP addresses.
    L23 = 1,
    /// IP addresses and ports. Between two UPFs or to one gNB all GTP-U has the same: then the whole tunnel is one flow.
    #[default]
    L34 = 2,
}

/// How long LACP waits for a silent partner (IEEE 802.1AX 6.4.2.3). A partner is asked to send three times as often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timeout {
    /// 3 seconds.
    #[default]
    Short,
    /// 90 seconds.
    Long,
}

impl Timeout {
    /// For the shim: milliseconds, or 0 for what the driver does by itself.
    const fn silence_ms(self) -> u16 {
        match self {
            Self::Short => 3_000,
            Self::Long => 0,
        }
    }
}

/// Several devices that are one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    /// How they work together.
    pub mode: Mode,
    /// 1 to [`MAX_MEMBERS`] devices, as for [`DeviceSpec::device`](crate::DeviceSpec).
    pub members: Vec<String>,
    /// How one is chosen for sending ([`Mode::Balance`] and [`Mode::Lacp`]).
    pub transmit: Transmit,
    /// The member, by its place, that carries packets whenever its link is up ([`Mode::ActiveBackup`]). `None`: who carries
    /// them goes on to.
    pub primary: Option<usize>,
    /// After which silence a partner is given up ([`Mode::Lacp`]).
    pub timeout: Timeout,
}

impl Bond {
    /// Why there can't be such a port, if so.
    pub(crate) fn wrong(&self) -> Option<&'static str> {
        if self.members.is_empty() || self.members.len() > MAX_MEMBERS {
            return Some("it has no members, or more than 8");
        }
        let id = |device: &String| device.split(',').next().unwrap_or_default().to_owned();
        let mut ids: Vec<_> = self.members.iter().map(id).collect();
        if ids.iter().any(|id| id.starts_with("net_bonding")) {
            return Some("a member is itself an aggregated port");
        }
        ids.sort_unstable();
        ids.dedup();
        if ids.len() < self.members.len() {
            return Some("a device is a member twice");
        }
        self.primary
            .is_some_and(|primary| primary >= self.members.len())
            .then_some("its primary is not a member")
    }
}

/// A port of several.
#[derive(Debug)]
pub(crate) struct Bonded {
    port: u16,
    mode: Mode,
    config: BondConfig,
    /// DPDK's numbers and names.
    members: Vec<(u16, String)>,
}

impl Bonded {
    /// Whether the driver wants to be called though there is nothing to send.
    pub(crate) const fn wants_calls(&self) -> bool {
        matches!(self.mode, Mode::Lacp)
    }

    /// DPDK's numbers of the members.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.members.iter().map(|(port, _)| *port)
    }

    /// Begins to look at the members' links, once the port has started. Ends when this is dropped.
    pub(crate) fn watch(&self) -> Result<(), i32> {
        // SAFETY: the port is open; the struct is read only during the call.
        match unsafe { ffi::mr_bond_watch(self.port, &raw const self.config) } {
            0 => Ok(()),
            errno => Err(errno),
        }
    }

    /// How each member fares.
    pub(crate) fn look(&self) -> Vec<Member> {
        let look = |(port, name): &(u16, String)| {
            let mut raw = RawMember::default();
            // SAFETY: both ports are open; room for one struct.
            unsafe { ffi::mr_bond_member(self.port, self.mode as u8, *port, &raw mut raw) };
            // A port that heard nobody yet names 00:00:00:00:00:00.
            let partner = (raw.partner != [0; 6]).then_some(MacAddr(raw.partner));
            Member {
                name: name.clone(),
                link_up: raw.link_up != 0,
                active: raw.active != 0,
                mbps: (raw.link_up != 0 && raw.mbps != 0 && raw.mbps != u32::MAX).then_some(raw.mbps),
                partner,
            }
        };
        self.members.iter().map(look).collect()
    }
}

impl Drop for Bonded {
    fn drop(&mut self) {
        // SAFETY: plain call; nobody looks from then on.
        unsafe { ffi::mr_bond_unwatch(self.port) };
    }
}

/// Makes a port of devices that were attached and not started. `made` is told its number once there is one, even if an
/// error follows: then it has to be closed before its members.
pub(crate) fn create(
    name: &CStr,
    bond: &Bond,
    ports: &[u16],
    descriptors: u32,
    socket: i32,
    made: impl FnOnce(u16),
) -> Result<Bonded, (String, i32)> {
    let mut config = BondConfig {
        mode: bond.mode as u8,
        policy: bond.transmit as u8,
        has_primary: 0,
        members: ports.len().min(MAX_MEMBERS) as u8,
        primary: 0,
        poll_ms: POLL_MS,
        ports: [0; MAX_MEMBERS],
        silence_ms: bond.timeout.silence_ms(),
    };
    for (place, port) in config.ports.iter_mut().zip(ports) {
        *place = *port;
    }
    if bond.mode == Mode::ActiveBackup
        && let Some(primary) = bond.primary.and_then(|at| ports.get(at))
    {
        (config.has_primary, config.primary) = (1, *primary);
    }
    let (mut port, mut step) = (u16::MAX, std::ptr::null());
    // SAFETY: a C string and a struct that are read only during the call; room for a number and a pointer.
    let errno = unsafe {
        let (config, port) = (&raw const config, &raw mut port);
        ffi::mr_bond_create(name.as_ptr(), config, descriptors, socket, port, &raw mut step)
    };
    if port != u16::MAX {
        made(port);
    }
    if errno != 0 {
        return Err((crate::device::step(step), errno));
    }
    let names = bond.members.iter().map(|device| device.split(',').next().unwrap_or_default().to_owned());
    Ok(Bonded { port, mode: bond.mode, config, members: ports.iter().copied().zip(names).collect() })
}

/// Whether the members that LACP is to join have one MAC address, the port's: it is the system that they say they belong to.
/// Drivers that can set an address have done so by now.
pub(crate) fn one_system(spec: &str, bond: &Bonded, own: [u8; 6]) -> Result<(), DpdkError> {
    let alike = |port| crate::device::raw_info(port).is_ok_and(|raw| raw.mac == own);
    if bond.mode != Mode::Lacp || bond.ports().all(alike) {
        return Ok(());
    }
    Err(DpdkError::Bond {
        device: spec.into(),
        why: "LACP wants one MAC address on all members, and their driver can't set it; set it by hand \
              (ip link set eth1 address ...)",
    })
}

/// Refuses what no driver has to be asked about.
pub(crate) fn check(device: &str, bond: &Bond) -> Result<(), DpdkError> {
    let refuse = |why| Err(DpdkError::Bond { device: device.into(), why });
    if !device.starts_with("net_bonding") {
        return refuse("its device must be named net_bonding and a number");
    }
    bond.wrong().map_or(Ok(()), refuse)
}

/// Keeps the two halves of a queue pair from transmitting at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn(Arc<AtomicBool>);

impl Turn {
    /// Waits for the other half, which is done within a burst.
    #[inline]
    pub(crate) fn take(&self) {
        while !self.try_take() {
            std::hint::spin_loop();
        }
    }

    #[inline]
    fn try_take(&self) -> bool {
        !self.0.swap(true, Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn give(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Makes the transmit calls that LACP wants and a quiet worker doesn't make.
#[derive(Debug)]
pub(crate) struct Pump {
    turn: Turn,
    clock: Tsc,
    due: Nanos,
}

impl Pump {
    pub(crate) fn new(turn: Turn) -> Self {
        Self { turn, clock: Tsc::process(), due: Nanos(0) }
    }

    /// Calls the driver if it is time to. Where the other half is transmitting just now, it does the same.
    #[inline]
    pub(crate) fn look(&mut self, port: u16, queue: u16) {
        let now = self.clock.now();
        if now < self.due {
            return;
        }
        self.due = now.plus(PUMP_NANOS);
        if self.turn.try_take() {
            // SAFETY: the port is open; no frames are given; the other half of the queue pair keeps out.
            unsafe { ffi::mr_tx(port, queue, std::ptr::null_mut(), 0) };
            self.turn.give();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_ports_are_refused_before_a_driver_is_asked() {
        let bond = |members: &[&str], primary| Bond {
            mode: Mode::ActiveBackup,
            members: members.iter().map(|&member| member.into()).collect(),
            transmit: Transmit::L34,
            primary,
            timeout: Timeout::Short,
        };
        let good = bond(&["0000:01:00.0", "0000:01:00.1"], Some(1));
        assert_eq!(check("net_bonding0", &good), Ok(()));
        let why = |device, bond: &Bond| match check(device, bond) {
            Err(DpdkError::Bond { why, .. }) => why,
            other => panic!("{other:?}"),
        };
        assert!(why("net_bond0", &good).contains("named net_bonding"));
        assert!(why("net_bonding0", &bond(&[], None)).contains("no members"));
        assert!(why("net_bonding0", &bond(&["a"; 9], None)).contains("more than 8"));
        assert!(
            why("net_bonding0", &bond(&["net_tap0,iface=a", "net_tap0,iface=b"], None)).contains("twice")
        );
        assert!(why("net_bonding0", &bond(&["net_bonding1"], None)).contains("itself"));
        assert!(why("net_bonding0", &bond(&["a", "b"], Some(2))).contains("primary"));
    }

    #[test]
    fn only_one_half_transmits_at_a_time() {
        let (one, other) = (Turn::default(), Turn::default());
        let same = one.clone();
        one.take();
        assert!(!same.try_take() && other.try_take());
        one.give();
        assert!(same.try_take());
    }
}
