//! From what the rooms below know to what is told of it.

use api::{CounterLine, DropLine, MemberLine, PortLine, SeidText, TeidText};
use datapath::Reason;
use io::{Member, Port};

/// A SEID as it is told.
pub const fn seid(seid: pfcp::Seid) -> SeidText {
    SeidText(seid.0)
}

/// A TEID as it is told.
pub const fn teid(teid: packet::Teid) -> TeidText {
    TeidText(teid.0)
}

/// A reason and its counter.
pub fn dropped((reason, packets): (Reason, u64)) -> DropLine {
    DropLine { reason: reason.label().into(), meaning: reason.meaning().into(), packets }
}

/// A counter.
pub fn counter(line: &counters::Line) -> CounterLine {
    CounterLine {
        counter: line.full_name(),
        kind: line.about.kind.label().into(),
        unit: line.about.unit.label().map(Into::into),
        meaning: line.meaning.clone(),
        value: line.value,
    }
}

/// What a port says of itself.
pub fn port<P: Port>(port: &P) -> PortLine {
    let (info, stats) = (port.info(), port.stats());
    PortLine {
        name: info.name.clone(),
        driver: info.driver.clone(),
        mac: info.mac.to_string(),
        mtu: info.mtu,
        queues: info.queues,
        link_up: port.link_up(),
        rx_packets: stats.rx_packets,
        rx_bytes: stats.rx_bytes,
        rx_missed: stats.rx_missed,
        rx_errors: stats.rx_errors,
        tx_packets: stats.tx_packets,
        tx_bytes: stats.tx_bytes,
        tx_errors: stats.tx_errors,
        remarks: port.remarks(),
        members: port.members().into_iter().map(member).collect(),
    }
}

fn member(member: Member) -> MemberLine {
    let Member { name, link_up, active, mbps, partner } = member;
    MemberLine { device: name, link_up, active, mbps, partner: partner.map(|mac| mac.to_string()) }
}
