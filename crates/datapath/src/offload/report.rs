//! What became of rules, for whoever looks.

use super::plan::Ineligible;
use counters::By;
use io::offload::{Capabilities, Container, Counts, Pattern, WhyRefused};
use std::net::IpAddr;

counters::labels! {
    /// Why a rule was taken back.
    pub enum TakenBack: "reason" {
        Session = "session", "Taken back because their session changed or ended.";
        Network = "network", "Taken back because a neighbour, a route or an interface changed.";
        Flow = "flow", "Taken back because their flow ended, or would be handled otherwise.";
        Credit = "credit", "Taken back because a volume threshold or quota came near.";
        Idle = "idle", "Taken back after a silence.";
        Lighter = "lighter", "Taken back because a heavier flow needed the place.";
        Failure = "failure", "Taken back because the NIC failed.";
        Asked = "asked", "Taken back because their worker ended, or gave the shard away.";
    }
}

counters::counters! {
    /// What became of rules.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct OffloadCounters {
        /// Flows that a NIC took.
        pub inserted: u64 = "inserted", Counter;
        /// Packets that NICs have handled, as far as their counters were read.
        pub packets: u64 = "packets", Counter of Packets;
        /// Bytes of the users' packets among them.
        pub bytes: u64 = "bytes", Counter of Bytes;
        /// Packets that NICs dropped, beyond what a rate left to them.
        pub dropped: u64 = "dropped", Counter of Packets;
        /// Times that a NIC failed and lost all its flows.
        pub failures: u64 = "failures", Counter;
        /// Flows whose last counters were lost by that.
        pub lost: u64 = "lost", Counter;
        /// Flows that NICs refused.
        pub refused: By<WhyRefused, { WhyRefused::COUNT }> = "refused", Counter;
        /// Heavy flows that stayed with software.
        pub ineligible: By<Ineligible, { Ineligible::COUNT }> = "stayed", Counter;
        /// Flows taken back from NICs.
        pub taken_back: By<TakenBack, { TakenBack::COUNT }> = "taken-back", Counter;
    }
}

/// A rule in force, for whoever looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryReport {
    /// The port that it is for.
    pub port: u16,
    /// Its packets.
    pub flow: FlowReport,
    /// Whether they come from the UE.
    pub uplink: bool,
    /// How many it has handled.
    pub counts: Counts,
    /// Packets a second, at the last reading.
    pub rate: u64,
}

counters::words!(EntryReport { port, flow, uplink, counts, rate });

/// The packets that a rule is for, as far as that is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// The TEID of their tunnel; `None`: they are in none.
    pub teid: Option<u32>,
    /// The QFI in its container.
    pub qfi: Option<u8>,
    /// Their source address; `None`: any.
    pub source: Option<IpAddr>,
    /// Their destination address.
    pub destination: Option<IpAddr>,
    /// Their protocol.
    pub protocol: Option<u8>,
    /// Their source and destination ports.
    pub ports: Option<(u16, u16)>,
}

counters::words!(FlowReport { teid, qfi, source, destination, protocol, ports });

impl From<&Pattern> for FlowReport {
    fn from(pattern: &Pattern) -> Self {
        let Pattern { tunnel, source, destination, protocol, ports, .. } = *pattern;
        let qfi = tunnel.and_then(|tunnel| match tunnel.container {
            Container::Qfi(qfi) => Some(qfi),
            Container::Absent => None,
        });
        Self { teid: tunnel.map(|tunnel| tunnel.teid), qfi, source, destination, protocol, ports }
    }
}

/// One worker's rules at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffloadReport {
    /// What became of rules.
    pub counters: OffloadCounters,
    /// Rules in force.
    pub entries: usize,
    /// Some of them.
    pub some: Vec<EntryReport>,
    /// What the devices can, by port.
    pub devices: Vec<Capabilities>,
    /// Devices that have failed and weren't tried again yet.
    pub down: usize,
}

counters::words!(OffloadReport { counters, entries, some, devices, down });

#[cfg(test)]
mod tests {
    use super::*;
    use counters::Words;
    use io::offload::{Feature, Features, TunnelMatch};
    use packet::MacAddr;
    use std::net::Ipv6Addr;

    #[test]
    fn a_report_is_passed_on_whole() {
        let plain = Pattern::new(MacAddr::ZERO).to([10, 45, 0, 1].into());
        let tunnel =
            TunnelMatch { destination: [192, 0, 2, 1].into(), teid: 0x101, container: Container::Qfi(9) };
        let rich = Pattern {
            tunnel: Some(tunnel),
            source: Some(IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | 7))),
            protocol: Some(17),
            ports: Some((1000, 53)),
            ..plain
        };
        let entry = |pattern: &Pattern, port| EntryReport {
            port,
            flow: pattern.into(),
            uplink: port > 0,
            counts: Counts { packets: 5, bytes: 6 },
            rate: 7,
        };
        let report = OffloadReport {
            counters: OffloadCounters { inserted: 3, ..OffloadCounters::default() },
            entries: 2,
            some: vec![entry(&plain, 0), entry(&rich, 1)],
            devices: vec![Capabilities { entries: Some(64), features: Features::of(&[Feature::Meter]) }],
            down: 1,
        };
        let mut words = Vec::new();
        report.put(&mut words);
        assert_eq!(OffloadReport::take(&mut words.as_slice()), Some(report));
    }
}
