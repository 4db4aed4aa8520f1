//! What was promised: each protocol that inspection is to know, and what stands for it here.
#![allow(clippy::unwrap_used)]

use dpi::Protocol;
use std::collections::HashSet;

/// By the name that people give it.
const LISTED: &[(&str, &[&str])] = &[
    ("HTTP/1", &["HTTP"]),
    ("HTTP/2", &["HTTP2", "gRPC"]),
    ("TLS", &["TLS"]),
    ("DTLS", &["DTLS"]),
    ("QUIC", &["QUIC"]),
    ("DNS", &["DNS", "mDNS", "LLMNR", "DoT", "DoH", "DoQ"]),
    ("SSH", &["SSH"]),
    ("FTP", &["FTP", "FTP data", "FTPS"]),
    ("SMTP", &["SMTP", "SMTPS"]),
    ("IMAP", &["IMAP", "IMAPS"]),
    ("POP3", &["POP3", "POP3S"]),
    ("SIP", &["SIP"]),
    ("RTP", &["RTP", "RTCP", "SRTP"]),
    ("RTSP", &["RTSP"]),
    ("STUN/TURN", &["STUN", "TURN"]),
    ("WebRTC", &["WebRTC"]),
    ("H.323", &["H.323"]),
    ("MGCP", &["MGCP"]),
    ("NTP", &["NTP"]),
    ("DHCPv4/6", &["DHCP", "DHCPv6"]),
    ("SNMP", &["SNMP"]),
    ("LDAP", &["LDAP", "CLDAP"]),
    ("Kerberos", &["Kerberos"]),
    ("RADIUS", &["RADIUS"]),
    ("Diameter", &["Diameter"]),
    ("SMB1-3", &["SMBv1", "SMBv2"]),
    ("NFS", &["NFS"]),
    ("RPC", &["ONC RPC", "DCE/RPC"]),
    ("RDP", &["RDP", "RDP over UDP"]),
    ("VNC", &["VNC"]),
    ("Telnet", &["Telnet"]),
    ("TFTP", &["TFTP"]),
    ("Syslog", &["Syslog"]),
    ("MQTT", &["MQTT"]),
    ("CoAP", &["CoAP"]),
    ("AMQP", &["AMQP"]),
    ("Kafka", &["Kafka"]),
    ("Redis", &["Redis"]),
    ("PostgreSQL", &["PostgreSQL"]),
    ("MySQL", &["MySQL"]),
    ("MongoDB", &["MongoDB"]),
    ("Cassandra", &["Cassandra"]),
    ("MSSQL", &["TDS"]),
    ("BitTorrent", &["BitTorrent", "uTP", "BitTorrent DHT", "BitTorrent tracker", "BitTorrent LSD"]),
    ("eDonkey", &["eDonkey", "eDonkey UDP"]),
    ("Gnutella", &["Gnutella"]),
    ("Bitcoin", &["Bitcoin"]),
    ("Ethereum", &["Ethereum", "Ethereum RLPx"]),
    ("WireGuard", &["WireGuard"]),
    ("OpenVPN", &["OpenVPN"]),
    ("IPsec", &["IKE", "ESP", "AH"]),
    ("PPTP", &["PPTP"]),
    ("L2TP", &["L2TP"]),
    ("SOCKS", &["SOCKS"]),
    ("Tor", &["Tor"]),
    ("Shadowsocks-like", &["Fully encrypted"]),
    ("GTP", &["GTP-U", "GTP-C", "GTP'"]),
    ("PFCP", &["PFCP"]),
    ("SCTP", &["SCTP"]),
    ("BGP", &["BGP"]),
    ("BFD", &["BFD"]),
    ("OSPF", &["OSPF"]),
    ("VRRP", &["VRRP"]),
    ("Modbus", &["Modbus"]),
    ("DNP3", &["DNP3"]),
    ("BACnet", &["BACnet"]),
    ("S7", &["S7Comm", "S7CommPlus"]),
    ("OPC UA", &["OPC UA"]),
    ("IEC 104", &["IEC 60870-5-104"]),
    ("EtherNet/IP", &["EtherNet/IP", "CIP I/O"]),
    // Its cyclic data are frames of Ethernet and no packets.
    ("PROFINET", &["PROFINET CM"]),
    ("RTMP", &["RTMP"]),
    ("HLS/DASH", &["HLS", "DASH"]),
    ("Source", &["Source Engine"]),
    ("RakNet", &["RakNet"]),
    ("Xbox", &["Xbox Live", "Xbox SmartGlass", "Teredo"]),
    ("PlayStation", &["PlayStation"]),
    ("VoIP apps' media", &["Call", "Discord", "LINE call", "Telegram", "Viber", "Zoom"]),
];

/// Nothing is asked about these: who knows another protocol says them of what that carries, the IP header does, or behaviour.
const OTHERWISE: &[&str] = &[
    "AH",
    "Call",
    "DASH",
    "DoH",
    "DoQ",
    "Fully encrypted",
    "gRPC",
    "HLS",
    "OSPF",
    "PROFINET CM",
    "S7CommPlus",
    "SCTP",
    "SRTP",
    "Tor",
    "TURN",
    "VRRP",
    "WebRTC",
];

#[test]
fn all_that_was_promised_is_known() {
    let asked: HashSet<Protocol> = dpi::protocols::recognisers().map(|it| it.protocol).collect();
    for (listed, names) in LISTED {
        assert!(!names.is_empty(), "{listed}");
        for name in *names {
            let protocol = Protocol::by_name(name).unwrap_or_else(|| panic!("{listed}: no {name}"));
            assert_ne!(asked.contains(&protocol), OTHERWISE.contains(name), "{listed}: {name}");
        }
    }
    assert!(LISTED.len() >= 75 && Protocol::ALL.len() >= 120);
}
