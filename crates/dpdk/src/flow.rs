//! `rte_flow` as an [`io::offload`] device.
//!
//! A rule becomes one flat struct, which the shim turns into DPDK's items and actions. What a driver objects to comes back
//! typed where it says which item or action it means, and otherwise in its own words. Nobody can know what a device takes without
//! asking: [`RteFlow::probe`] asks for one rule of each kind, and changes nothing.
//!
//! Rules that forward ([`io::offload::Action::Port`]) are *transfer* rules, carried out by the NIC's embedded switch; all others are
//! ingress rules of the port. They match exactly the packets that software would forward as well, with two exceptions that `rte_flow` has
//! no words for: a TTL of 1, and a wrong checksum. NICs with an embedded switch trap or drop both.
//!
//! Meters are `rte_mtr` objects (RFC 2697 without an excess burst; red packets are dropped by their policy). What a changed profile does to
//! a meter's tokens no documentation says, so meters aren't changed ([`FlowOffload::set_meter`]).
//!
//! Rules are destroyed one by one, never by `rte_flow_flush`: other workers' rules, and those that steer, are on the same port.

use crate::device::Device;
use crate::error::cause;
use crate::ffi::{self, RawFlowError, RawRule, RteFlowActionHandle, RteFlowRule};
use crate::port::DpdkPort;
use io::offload::{
    Action, Capabilities, Container, CounterId, Counts, Failure, Feature, Features, FlowOffload, FlowRule,
    Handle, MeterId, Pattern, Refused, TunnelMatch,
};
use packet::{MacAddr, rss};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tables::{MeterConfig, Nanos};

/// The codes of `enum mr_part`, from 1 on.
const PARTS: [Feature; 15] = [
    Feature::Ethernet,
    Feature::Addresses,
    Feature::Tunnels,
    Feature::Containers,
    Feature::Inner,
    Feature::Count,
    Feature::Mark,
    Feature::Queue,
    Feature::Rss,
    Feature::Meter,
    Feature::Decap,
    Feature::DecTtl,
    Feature::Encap,
    Feature::Port,
    Feature::SharedCount,
];

/// errno values that say why a rule isn't taken (Linux's numbers).
mod errno {
    pub(super) const EAGAIN: i32 = 11;
    pub(super) const ENOMEM: i32 = 12;
    pub(super) const EBUSY: i32 = 16;
    pub(super) const EEXIST: i32 = 17;
    pub(super) const EINVAL: i32 = 22;
    pub(super) const ENOSPC: i32 = 28;
    pub(super) const ENOSYS: i32 = 38;
    pub(super) const ENOTSUP: i32 = 95;
}

/// A rule of DPDK's, which the device knows until it is destroyed.
#[derive(Debug)]
struct Rule {
    flow: NonNull<RteFlowRule>,
    counted: bool,
}

/// The number of the next meter: workers share ports, and numbers are the ports'.
static NEXT_METER: AtomicU32 = AtomicU32::new(1);

/// The flow table behind a DPDK port.
#[derive(Debug)]
pub struct RteFlow {
    device: Arc<Device>,
    /// DPDK's numbers of the ports, in the order of the configuration.
    ports: Arc<[u16]>,
    rules: HashMap<u64, Rule>,
    next: u64,
    meters: BTreeSet<MeterId>,
    counters: BTreeMap<CounterId, NonNull<RteFlowActionHandle>>,
    features: Features,
    /// Of rules to come: 0 comes first.
    pub(crate) priority: u8,
}

// SAFETY: the pointers are DPDK's names of rules; they are used through `&mut self` only, and the flow API takes a lock of the
// port's (or the driver says that it needs none, RTE_ETH_DEV_FLOW_OPS_THREAD_SAFE), so the thread doesn't matter.
unsafe impl Send for RteFlow {}

impl RteFlow {
    /// The flow table of a port, after asking it what it can. `ports`: DPDK's numbers of all ports that rules may forward to, in the
    /// order of the configuration.
    pub(crate) fn new(device: Arc<Device>, ports: Arc<[u16]>) -> Self {
        let mut flow = Self::without_asking(device);
        flow.ports = ports;
        for (_, rule, answer) in flow.probe() {
            if answer.is_ok() {
                flow.features = rule.needs().each().fold(flow.features, Features::with);
            }
        }
        // SAFETY: the port is open.
        if flow.features.has(Feature::Rules) && unsafe { ffi::mr_meter_able(flow.device.port()) } != 0 {
            flow.features = flow.features.with(Feature::Meter);
        }
        flow
    }

    /// The flow table of a port, for rules of its own.
    pub(crate) fn without_asking(device: Arc<Device>) -> Self {
        let features = Features::default();
        Self {
            device,
            ports: Arc::default(),
            rules: HashMap::new(),
            next: 1,
            meters: BTreeSet::new(),
            counters: BTreeMap::new(),
            features,
            priority: 0,
        }
    }

    /// Asks whether the device would take one rule of each kind that is of use.
    pub fn probe(&self) -> Vec<(&'static str, FlowRule, Result<(), Refused>)> {
        let rules = kinds().into_iter();
        rules.map(|(name, rule)| (name, rule.clone(), self.validate(&rule))).collect()
    }

    /// Whether the device would take a rule now.
    ///
    /// Errors: see [`Refused`].
    pub fn validate(&self, rule: &FlowRule) -> Result<(), Refused> {
        self.with_raw(rule, |port, raw, error| {
            // SAFETY: the port is open, and what `raw` points at outlives the call.
            unsafe { ffi::mr_flow_validate(port, raw, error) };
        })
    }

    fn with_raw(
        &self,
        rule: &FlowRule,
        call: impl FnOnce(u16, *const RawRule, *mut RawFlowError),
    ) -> Result<(), Refused> {
        if rule.may_exceed {
            return Err(Refused::Unsupported(Feature::Lengths));
        }
        let front = front(&rule.pattern);
        let counter = |counter| self.counters.get(&counter).map(|known| known.as_ptr().cast_const());
        let raw = RawRule { priority: self.priority, ..raw(rule, &front, &self.ports, counter)? };
        let mut error = RawFlowError::NONE;
        call(self.device.port(), &raw const raw, &raw mut error);
        if error.code == 0 { Ok(()) } else { Err(refused(&error)) }
    }

    fn destroy(&self, rule: &Rule) -> Result<(), Failure> {
        let mut error = RawFlowError::NONE;
        // SAFETY: the port is open; the rule was created there and not destroyed yet.
        unsafe { ffi::mr_flow_destroy(self.device.port(), rule.flow.as_ptr(), &raw mut error) };
        if error.code == 0 { Ok(()) } else { Err(Failure::Device(words(&error))) }
    }

    fn destroy_counter(&self, counter: NonNull<RteFlowActionHandle>) -> Result<(), Failure> {
        let mut error = RawFlowError::NONE;
        // SAFETY: the port is open; the counter was made there and not destroyed yet.
        unsafe { ffi::mr_counter_destroy(self.device.port(), counter.as_ptr(), &raw mut error) };
        if error.code == 0 { Ok(()) } else { Err(Failure::Device(words(&error))) }
    }

    fn destroy_meter(&self, meter: MeterId) -> Result<(), Failure> {
        let mut error = RawFlowError::NONE;
        // SAFETY: the port is open.
        unsafe { ffi::mr_meter_destroy(self.device.port(), meter.0, &raw mut error) };
        if error.code == 0 { Ok(()) } else { Err(Failure::Device(words(&error))) }
    }

    fn read(&self, rule: &Rule) -> Result<Counts, Failure> {
        if !rule.counted {
            return Ok(Counts::default());
        }
        let mut counts = Counts::default();
        let mut error = RawFlowError::NONE;
        let port = self.device.port();
        let (packets, bytes) = (&raw mut counts.packets, &raw mut counts.bytes);
        // SAFETY: the port is open; the rule was created there and not destroyed yet; room for two numbers.
        unsafe { ffi::mr_flow_count(port, rule.flow.as_ptr(), packets, bytes, &raw mut error) };
        if error.code == 0 { Ok(counts) } else { Err(Failure::Device(words(&error))) }
    }
}

impl FlowOffload for RteFlow {
    fn capabilities(&self) -> Capabilities {
        Capabilities { entries: None, features: self.features }
    }

    fn insert(&mut self, _now: Nanos, rule: &FlowRule) -> Result<Handle, Refused> {
        let mut flow = std::ptr::null_mut();
        self.with_raw(rule, |port, raw, error| {
            // SAFETY: the port is open, and what `raw` points at outlives the call: DPDK copies what it keeps.
            flow = unsafe { ffi::mr_flow_create(port, raw, error) };
        })?;
        let flow = NonNull::new(flow).ok_or_else(|| Refused::Device("no rule came back".into()))?;
        let handle = self.next;
        self.next += 1;
        self.rules.insert(handle, Rule { flow, counted: rule.actions.contains(&Action::Count) });
        Ok(Handle(handle))
    }

    fn counts(&mut self, handle: Handle) -> Result<Counts, Failure> {
        self.read(self.rules.get(&handle.0).ok_or(Failure::Forgotten)?)
    }

    /// The last count is read before the rule is destroyed: packets in between are forwarded and not counted.
    fn remove(&mut self, handle: Handle) -> Result<Counts, Failure> {
        let rule = self.rules.get(&handle.0).ok_or(Failure::Forgotten)?;
        let counts = self.read(rule)?;
        self.destroy(rule)?;
        self.rules.remove(&handle.0);
        Ok(counts)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        let rules = std::mem::take(&mut self.rules);
        for (handle, rule) in rules {
            if let Err(failure) = self.destroy(&rule) {
                self.rules.insert(handle, rule);
                result = Err(failure);
            }
        }
        result?;
        while let Some(meter) = self.meters.first().copied() {
            self.destroy_meter(meter)?;
            self.meters.remove(&meter);
        }
        while let Some((counter, known)) = self.counters.pop_first() {
            if let Err(failure) = self.destroy_counter(known) {
                self.counters.insert(counter, known);
                return Err(failure);
            }
        }
        Ok(())
    }

    fn add_counter(&mut self, _now: Nanos) -> Result<CounterId, Refused> {
        let mut error = RawFlowError::NONE;
        // SAFETY: the port is open.
        let made = unsafe { ffi::mr_counter_create(self.device.port(), &raw mut error) };
        let made = NonNull::new(made).ok_or_else(|| refused(&error))?;
        let counter = CounterId(self.counters.last_key_value().map_or(0, |(last, _)| last.0) + 1);
        self.counters.insert(counter, made);
        Ok(counter)
    }

    fn counted(&mut self, counter: CounterId) -> Result<Counts, Failure> {
        let known = self.counters.get(&counter).ok_or(Failure::Forgotten)?;
        let mut counts = Counts::default();
        let mut error = RawFlowError::NONE;
        let (packets, bytes) = (&raw mut counts.packets, &raw mut counts.bytes);
        // SAFETY: the port is open; the counter was made there and not destroyed yet; room for two numbers.
        unsafe {
            ffi::mr_counter_read(self.device.port(), known.as_ptr(), packets, bytes, &raw mut error);
        }
        if error.code == 0 { Ok(counts) } else { Err(Failure::Device(words(&error))) }
    }

    fn remove_counter(&mut self, counter: CounterId) -> Result<Counts, Failure> {
        let counts = self.counted(counter)?;
        if let Some(known) = self.counters.get(&counter) {
            self.destroy_counter(*known)?;
        }
        self.counters.remove(&counter);
        Ok(counts)
    }

    fn add_meter(&mut self, _now: Nanos, config: MeterConfig) -> Result<MeterId, Refused> {
        let meter = MeterId(NEXT_METER.fetch_add(1, Ordering::Relaxed));
        let mut error = RawFlowError::NONE;
        let (rate, burst) = (config.rate_bps / 8, u64::from(config.burst_bytes));
        // SAFETY: the port is open.
        unsafe { ffi::mr_meter_create(self.device.port(), meter.0, rate, burst, &raw mut error) };
        if error.code != 0 {
            return Err(refused(&error));
        }
        self.meters.insert(meter);
        Ok(meter)
    }

    fn dropped(&mut self, meter: MeterId) -> Result<Counts, Failure> {
        if !self.meters.contains(&meter) {
            return Err(Failure::Forgotten);
        }
        let mut counts = Counts::default();
        let mut error = RawFlowError::NONE;
        let (packets, bytes) = (&raw mut counts.packets, &raw mut counts.bytes);
        // SAFETY: the port is open; room for two numbers.
        unsafe { ffi::mr_meter_dropped(self.device.port(), meter.0, packets, bytes, &raw mut error) };
        if error.code == 0 { Ok(counts) } else { Err(Failure::Device(words(&error))) }
    }

    fn remove_meter(&mut self, meter: MeterId) -> Result<Counts, Failure> {
        let dropped = self.dropped(meter)?;
        self.destroy_meter(meter)?;
        self.meters.remove(&meter);
        Ok(dropped)
    }
}

impl Drop for RteFlow {
    fn drop(&mut self) {
        // Closing the port forgets what can't be destroyed.
        let _ = self.flush();
    }
}

impl DpdkPort {
    /// The rules that make this port spread packets by subscriber: uplink by the source inside the tunnel, downlink by the
    /// destination, over the first `queues` queues; 0: over those that the port's redirection table names.
    pub fn spreading_rules(queues: u16) -> [FlowRule; 4] {
        let queues: Vec<u16> = (0..queues).collect();
        [(true, false), (true, true), (false, false), (false, true)].map(|(uplink, v6)| {
            let tunnel = uplink.then_some(TunnelMatch {
                destination: IpAddr::from([0; 4]),
                teid: 0,
                container: Container::Qfi(ANY_QFI),
            });
            let rss = Action::Rss { inner: uplink, source: uplink, queues: queues.clone() };
            let pattern = Pattern { tunnel, v6, ..Pattern::new(MacAddr::ZERO) };
            FlowRule { pattern, longest: u16::MAX, may_exceed: false, actions: vec![rss] }
        })
    }
}

/// In a pattern: a container with any QFI.
const ANY_QFI: u8 = 0xff;

/// A rule of each kind, for addresses of documentation (RFC 5737, RFC 3849).
fn kinds() -> Vec<(&'static str, FlowRule)> {
    let mac = MacAddr([2, 0, 0, 0, 0, 1]);
    let rule = |pattern, actions| FlowRule { pattern, longest: u16::MAX, may_exceed: false, actions };
    let plain = Pattern {
        source: Some(IpAddr::from([198, 51, 100, 1])),
        protocol: Some(17),
        ports: Some((53, 40_000)),
        ..Pattern::new(mac).to([203, 0, 113, 1].into())
    };
    let six = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
    let plain6 = Pattern { v6: true, source: Some(six(1)), destination: Some(six(2)), ..plain };
    let tcp = Pattern { protocol: Some(6), ..plain };
    let tunnelled = |container| {
        let destination = IpAddr::from([192, 0, 2, 1]);
        Pattern { tunnel: Some(TunnelMatch { destination, teid: 1, container }), ..plain }
    };
    let tunnel = tunnelled(Container::Absent);
    let queue = || vec![Action::Queue(0)];
    let forward = |front: usize| {
        // Ethernet, and for downlink IPv4, UDP and GTP-U with a container.
        let mut headers = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45][..], &[0; 43]].concat();
        headers.truncate(front);
        vec![Action::Count, Action::Decap, Action::DecTtl, Action::Encap(headers.into()), Action::Port(0)]
    };
    let [rss_uplink, _, rss_downlink, _] = DpdkPort::spreading_rules(1);
    let mut kinds = vec![
        ("queue by destination", rule(Pattern::new(mac).to([203, 0, 113, 1].into()), queue())),
        ("queue by UDP flow", rule(plain, queue())),
        ("queue by TCP flow", rule(tcp, queue())),
        ("queue by IPv6 flow", rule(plain6, queue())),
        ("queue by VLAN", rule(Pattern { vlan: Some(100), ..plain }, queue())),
        ("queue and count", rule(plain, vec![Action::Count, Action::Queue(0)])),
        ("queue and mark", rule(plain, vec![Action::Mark(1), Action::Queue(0)])),
        ("queue by flow in a tunnel", rule(tunnel, queue())),
        ("queue by flow in a tunnel with a container", rule(tunnelled(Container::Qfi(9)), queue())),
        ("spread by inner source", rss_uplink),
        ("spread by destination", rss_downlink),
    ];
    kinds.push(("take off a tunnel and forward", rule(tunnel, forward(14))));
    kinds.push(("put on a tunnel and forward", rule(plain, forward(58))));
    kinds
}

/// The headers in front of a pattern's user's packets, as far as a device must know them to cut them off.
fn front(pattern: &Pattern) -> Vec<u8> {
    let mut front = [&pattern.mac.0[..], &[0; 6]].concat();
    if let Some(vlan) = pattern.vlan {
        front.extend([0x81, 0x00]);
        front.extend(vlan.to_be_bytes());
    }
    let outer6 = pattern.tunnel.map_or(pattern.v6, |tunnel| tunnel.destination.is_ipv6());
    front.extend(if outer6 { [0x86, 0xdd] } else { [0x08, 0x00] });
    let Some(tunnel) = pattern.tunnel else { return front };
    let mut ip = [0; 40];
    let length = if outer6 {
        (ip[0], ip[6]) = (0x60, 17);
        40
    } else {
        (ip[0], ip[9]) = (0x45, 17);
        20
    };
    front.extend(ip.iter().take(length));
    let [p0, p1] = packet::GTP_U_PORT.to_be_bytes();
    front.extend([p0, p1, p0, p1, 0, 0, 0, 0]);
    let flags = if tunnel.container == Container::Absent { 0x30 } else { 0x34 };
    front.extend([flags, 255, 0, 0]);
    front.extend(tunnel.teid.to_be_bytes());
    if let Container::Qfi(qfi) = tunnel.container {
        front.extend([0, 0, 0, 0x85, 1, 0x10, qfi, 0]);
    }
    front
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
    }
}

/// The shim's form of a rule. It points into `rule` and `front`.
fn raw(
    rule: &FlowRule,
    front: &[u8],
    ports: &[u16],
    known: impl Fn(CounterId) -> Option<*const RteFlowActionHandle>,
) -> Result<RawRule, Refused> {
    let FlowRule { pattern, actions, .. } = rule;
    let tunnel = pattern.tunnel;
    let steers = actions.iter().any(|action| matches!(action, Action::Rss { .. }));
    let mut raw = RawRule {
        decap: front.as_ptr(),
        encap: std::ptr::null(),
        rss_key: std::ptr::null(),
        counter: std::ptr::null(),
        teid: tunnel.map_or(0, |tunnel| tunnel.teid),
        mark: 0,
        meters: [0; ffi::METERS],
        decap_len: front.len() as u16,
        encap_len: 0,
        vlan: pattern.vlan.unwrap_or(u16::MAX),
        source_port: pattern.ports.map_or(0, |(source, _)| source),
        destination_port: pattern.ports.map_or(0, |(_, destination)| destination),
        queue: 0,
        to_port: 0,
        rss_queues: 0,
        mac: pattern.mac.0,
        outer_destination: tunnel.map_or([0; 16], |tunnel| octets(tunnel.destination)),
        source: pattern.source.map_or([0; 16], octets),
        destination: pattern.destination.map_or([0; 16], octets),
        // What steers is for all packets of a kind.
        has_mac: u8::from(!steers),
        has_outer_destination: u8::from(tunnel.is_some() && !steers),
        has_teid: u8::from(tunnel.is_some() && !steers),
        has_source: u8::from(pattern.source.is_some()),
        has_destination: u8::from(pattern.destination.is_some()),
        has_protocol: u8::from(pattern.protocol.is_some()),
        has_ports: u8::from(pattern.ports.is_some()),
        tunnel: match tunnel.map(|tunnel| tunnel.container) {
            None => 0,
            Some(Container::Absent) => 1,
            Some(Container::Qfi(_)) => 2,
        },
        outer_v6: u8::from(tunnel.is_some_and(|tunnel| tunnel.destination.is_ipv6())),
        v6: u8::from(pattern.v6),
        qfi: match tunnel {
            Some(TunnelMatch { container: Container::Qfi(qfi), .. }) => qfi,
            _ => ANY_QFI,
        },
        protocol: pattern.protocol.unwrap_or(0),
        tos: pattern.tos.map_or(0, |(tos, _)| tos),
        tos_mask: pattern.tos.map_or(0, |(_, mask)| mask),
        exact: u8::from(actions.iter().any(|action| matches!(action, Action::Port(_)))),
        rss_inner: 0,
        rss_source: 0,
        actions: [0; 10],
        priority: 0,
        reserved: [0; 2],
    };
    let mut meters = raw.meters.iter_mut();
    let mut codes = raw.actions;
    let mut places = codes.iter_mut();
    for action in actions {
        let part = action.needs();
        match action {
            Action::Count | Action::Decap | Action::DecTtl => {}
            Action::CountFor(counter) => {
                let unknown = || Refused::Device("no such counter".into());
                raw.counter = known(*counter).ok_or_else(unknown)?;
            }
            Action::Mark(mark) => raw.mark = *mark,
            Action::Queue(queue) => raw.queue = *queue,
            Action::Rss { inner, source, queues } => {
                (raw.rss_inner, raw.rss_source) = (u8::from(*inner), u8::from(*source));
                raw.rss_queues = queues.len() as u16;
                // Drivers that spread by the port's own table take its key, too, and no other.
                raw.rss_key = if queues.is_empty() { std::ptr::null() } else { rss::UE_KEY.as_ptr() };
            }
            Action::Meter(meter) => {
                *meters.next().ok_or_else(|| Refused::Device("too many meters".into()))? = meter.0;
            }
            Action::Encap(headers) => {
                raw.encap = headers.as_ptr();
                raw.encap_len = headers.len() as u16;
            }
            Action::Port(port) => {
                let unknown = Refused::Unsupported(Feature::Port);
                raw.to_port = *ports.get(usize::from(*port)).ok_or(unknown)?;
            }
        }
        // An outer IPv6 header's UDP checksum is beyond all NICs that rte_flow has words for.
        let code = PARTS.iter().position(|known| *known == part).ok_or(Refused::Unsupported(part))?;
        let place = places.next().ok_or_else(|| Refused::Device("too many actions".into()))?;
        *place = code as u8 + 1;
    }
    raw.actions = codes;
    Ok(raw)
}

/// What the driver said, in words.
fn words(error: &RawFlowError) -> String {
    let message = error.message.split(|&byte| byte == 0).next().unwrap_or_default();
    let message = String::from_utf8_lossy(message);
    let cause = cause(error.code);
    if message.is_empty() { cause } else { format!("{message} ({cause}, error type {})", error.kind) }
}

/// What a driver answered to a rule, for people.
pub(crate) fn answer(error: &RawFlowError) -> Result<(), String> {
    match refused(error) {
        _ if error.code == 0 => Ok(()),
        Refused::Unsupported(feature) => Err(Refused::Unsupported(feature).to_string()),
        _ => Err(words(error)),
    }
}

fn refused(error: &RawFlowError) -> Refused {
    let part = (error.part as usize).checked_sub(1).and_then(|part| PARTS.get(part));
    match (error.code, part) {
        (errno::ENOSYS, _) => Refused::Unsupported(Feature::Rules),
        (errno::ENOSPC | errno::ENOMEM, _) => Refused::Full,
        (errno::EEXIST, _) => Refused::Exists,
        (errno::EBUSY | errno::EAGAIN, _) => Refused::Busy,
        (errno::ENOTSUP | errno::EINVAL, Some(part)) => Refused::Unsupported(*part),
        _ => Refused::Device(words(error)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn codes_are_those_of_the_shim() {
        let shim = include_str!("../shim/flow.h");
        let list = shim.split("MR_PART_NONE,").nth(1).unwrap().split("};").next().unwrap();
        let names: Vec<_> = list
            .lines()
            .filter_map(|line| line.trim().strip_prefix("MR_PART_")?.strip_suffix(','))
            .map(|name| name.to_lowercase().replace('_', "-"))
            .collect();
        let labels: Vec<_> = PARTS.iter().map(|part| part.label()).collect();
        let singular: Vec<_> = labels
            .iter()
            .map(|label| match *label {
                "tunnels" => "tunnel",
                "containers" => "container",
                other => other,
            })
            .collect();
        assert_eq!(names, singular);
    }

    #[test]
    fn headers_to_cut_off_have_the_length_that_the_pattern_says() {
        for (name, rule) in kinds() {
            let expected = 14
                + rule.pattern.vlan.map_or(0, |_| 4)
                + rule.pattern.tunnel.map_or(0, |tunnel| 28 + tunnel.container.header());
            assert_eq!(front(&rule.pattern).len(), expected, "{name}");
        }
    }

    #[test]
    fn spreading_by_subscriber_asks_for_one_address_and_one_key() {
        for (queues, key) in [(0, false), (4, true)] {
            let built = DpdkPort::spreading_rules(queues).map(|rule| raw(&rule, &[], &[], |_| None).unwrap());
            let seen = built.map(|raw| (raw.tunnel, raw.v6, raw.rss_inner, raw.rss_source));
            // In a tunnel with a container the source inside, outside of one the destination.
            assert_eq!(seen, [(2, 0, 1, 1), (2, 1, 1, 1), (0, 0, 0, 0), (0, 1, 0, 0)]);
            for raw in built {
                assert_eq!((raw.rss_queues, !raw.rss_key.is_null()), (queues, key));
                assert_eq!(
                    (raw.has_mac, raw.has_teid, raw.has_outer_destination, raw.qfi),
                    (0, 0, 0, ANY_QFI)
                );
                assert_eq!(raw.actions, [9, 0, 0, 0, 0, 0, 0, 0, 0, 0], "RSS alone");
            }
        }
    }

    #[test]
    fn errors_become_types() {
        let error = |code, part| {
            let mut message = [0; 116];
            message[..2].copy_from_slice(b"no");
            refused(&RawFlowError { code, kind: 3, part, message })
        };
        assert_eq!(error(38, 0), Refused::Unsupported(Feature::Rules));
        assert_eq!(error(95, 3), Refused::Unsupported(Feature::Tunnels));
        assert_eq!(error(22, 14), Refused::Unsupported(Feature::Port));
        assert_eq!(error(28, 0), Refused::Full);
        assert_eq!(error(17, 0), Refused::Exists);
        assert_eq!(error(11, 5), Refused::Busy);
        assert!(matches!(error(22, 0), Refused::Device(text) if text.starts_with("no (")));
    }

    #[test]
    fn a_rule_has_up_to_three_meters() {
        let (_, mut rule) = kinds().pop().unwrap();
        rule.actions.splice(1..1, [7, 8, 9].map(|meter| Action::Meter(MeterId(meter))));
        let built = raw(&rule, &[], &[7], |_| None).unwrap();
        assert_eq!((built.meters, built.actions), ([7, 8, 9], [6, 10, 10, 10, 11, 12, 13, 14, 0, 0]));
        rule.actions
            .splice(1..3, [Action::Meter(MeterId(1)), Action::Meter(MeterId(2)), Action::Meter(MeterId(3))]);
        assert!(matches!(raw(&rule, &[], &[7], |_| None), Err(Refused::Device(_))));
    }

    #[test]
    fn a_rule_counts_for_a_counter_that_there_is() {
        let (_, mut rule) = kinds().pop().unwrap();
        rule.actions.insert(1, Action::CountFor(CounterId(4)));
        assert!(matches!(raw(&rule, &[], &[7], |_| None), Err(Refused::Device(_))));
        let known = NonNull::<RteFlowActionHandle>::dangling().as_ptr().cast_const();
        let built = raw(&rule, &[], &[7], |counter| (counter == CounterId(4)).then_some(known)).unwrap();
        assert_eq!((built.counter, built.actions), (known, [6, 15, 11, 12, 13, 14, 0, 0, 0, 0]));
    }

    #[test]
    fn a_port_that_nobody_named_is_unsupported() {
        let (_, rule) = kinds().pop().unwrap();
        let front = front(&rule.pattern);
        assert_eq!(raw(&rule, &front, &[], |_| None).unwrap_err(), Refused::Unsupported(Feature::Port));
        let raw = raw(&rule, &front, &[7], |_| None).unwrap();
        assert_eq!((raw.to_port, raw.encap_len, raw.decap_len, raw.exact), (7, 58, 14, 1));
        assert_eq!(raw.actions, [6, 11, 12, 13, 14, 0, 0, 0, 0, 0]);
    }
}
