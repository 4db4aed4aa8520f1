//! Ports, their devices and what these do.

use super::Question;
use crate::table::{Page, columns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show ports and their counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Ports {}

impl Question for Ports {
    const NAME: &'static str = "ports";
    const SEE: &'static str = "ports.md";
    type Answer = PortList;

    fn show(&self, PortList { ports }: &PortList) -> Page {
        let mut page = Page::table(ports);
        let of =
            |port: &PortLine, member: &MemberLine| OfPort { port: port.name.clone(), member: member.clone() };
        let members: Vec<_> =
            ports.iter().flat_map(|port| port.members.iter().map(move |m| of(port, m))).collect();
        page.part(&members);
        let say = |port: &PortLine, text: &String| Remark { port: port.name.clone(), text: text.clone() };
        let remarks: Vec<_> =
            ports.iter().flat_map(|port| port.remarks.iter().map(move |r| say(port, r))).collect();
        page.part(&remarks);
        page
    }
}

/// All ports.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PortList {
    /// In the order of the configuration.
    pub ports: Vec<PortLine>,
}

/// A port with its device's own counters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PortLine {
    /// The name in the configuration.
    pub name: String,
    /// Driver.
    pub driver: String,
    /// MAC address.
    pub mac: String,
    /// MTU in bytes.
    pub mtu: u16,
    /// Queue pairs.
    pub queues: u16,
    /// Link state.
    pub link_up: bool,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Lost for want of a queue entry or buffer.
    pub rx_missed: u64,
    /// Received with an error.
    pub rx_errors: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Failed to be sent.
    pub tx_errors: u64,
    /// The devices that are the port together; empty: it is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberLine>,
    /// What the device does of what it was asked to, and what it doesn't.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// A device of several that are one port.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemberLine {
    /// The device.
    pub device: String,
    /// Link state.
    pub link_up: bool,
    /// Whether packets go out by it.
    pub active: bool,
    /// The link's speed in Mbit/s, if known.
    pub mbps: Option<u32>,
    /// The MAC address of the system at the other end, as LACP heard of it.
    pub partner: Option<String>,
}

columns!(PortLine, |port| {
    "PORT" Left port.name,
    "DRIVER" Left port.driver,
    "MAC" Left port.mac,
    "MTU" Right port.mtu,
    "QUEUES" Right port.queues,
    "LINK" Left link(port.link_up),
    "RX PACKETS" Right port.rx_packets,
    "RX BYTES" Right port.rx_bytes,
    "MISSED" Right port.rx_missed,
    "ERRORS" Right port.rx_errors,
    "TX PACKETS" Right port.tx_packets,
    "TX BYTES" Right port.tx_bytes,
    "ERRORS" Right port.tx_errors,
});

const fn link(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

/// A member with its port.
struct OfPort {
    port: String,
    member: MemberLine,
}

columns!(OfPort, |line| {
    "PORT" Left line.port,
    "DEVICE" Left line.member.device,
    "LINK" Left link(line.member.link_up),
    "MBIT/S" Right line.member.mbps,
    "CARRIES" Left if line.member.active { "yes" } else { "no" },
    "PARTNER" Left line.member.partner,
});

/// What a device does of what it was asked to.
struct Remark {
    port: String,
    text: String,
}

columns!(Remark, |line| {
    "PORT" Left line.port,
    "WHAT ITS DEVICE DOES" Left line.text,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_with_members_and_remarks() {
        let port = PortLine {
            name: "access".into(),
            driver: "net_ice".into(),
            mtu: 9000,
            link_up: true,
            members: vec![
                MemberLine {
                    device: "0000:01:00.0".into(),
                    mbps: Some(100_000),
                    link_up: true,
                    ..MemberLine::default()
                },
                MemberLine {
                    device: "0000:01:00.1".into(),
                    active: true,
                    link_up: true,
                    partner: Some("02:00:00:00:00:bb".into()),
                    ..MemberLine::default()
                },
            ],
            remarks: vec!["its redirection table can't be changed".into()],
            ..PortLine::default()
        };
        insta::assert_snapshot!(Ports {}.show(&PortList { ports: vec![port] }));
    }
}
