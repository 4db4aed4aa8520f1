//! `[[mirror]]`: where copies of chosen packets can be sent. Which packets, is said at run time (`millrace ctl mirror`).

use super::findings::{Check, way};
use super::problem::Wrong;
use super::sections::File;
use super::units::{self, Text};
use packet::{MacAddr, Teid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;

/// How copies reach a mirror's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MirrorKind {
    /// Out of a port, behind an Ethernet header.
    Port,
    /// Through a GTP-U tunnel (TS 29.281).
    Gtpu,
    /// Through a GRE tunnel (RFC 2784).
    Gre,
    /// Through GRE as ERSPAN type III.
    Erspan,
    /// Into pcapng files.
    Pcapng,
}

impl MirrorKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Gtpu => "gtpu",
            Self::Gre => "gre",
            Self::Erspan => "erspan",
            Self::Pcapng => "pcapng",
        }
    }
}

/// A place that copies of packets can be sent to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MirrorSection {
    /// The name that `millrace ctl mirror add --to` takes.
    pub name: String,
    /// How copies get there; the keys below belong to one kind each.
    pub to: MirrorKind,
    /// `port`: the port that copies leave through. It needs no interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// `port`: IEEE 802.1Q VLAN ID. Default: untagged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4094))]
    pub vlan: Option<u16>,
    /// `port`: the probe's MAC address.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<MacAddr>>")]
    pub mac: Option<MacAddr>,
    /// `gtpu`, `gre`, `erspan`: the tunnel's far end. Ours is the interface's address on the way there.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<IpAddr>>")]
    pub destination: Option<IpAddr>,
    /// `gtpu`: the far end's TEID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub teid: Option<u32>,
    /// `gre`: the tunnel's key (RFC 2890). Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub key: Option<u32>,
    /// `erspan`: the session ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1023))]
    pub session_id: Option<u16>,
    /// `pcapng`: the file. Each mirror writes one of its own, with time and number before the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// `pcapng`: the longest that a file becomes, in bytes. Default: 1073741824.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4096, max = 1_099_511_627_776_u64))]
    pub max_bytes: Option<u64>,
    /// Copy one in so many packets that match.
    #[serde(default = "default_sample")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub sample: u32,
    /// Bytes of the UE's packet that are copied, at most.
    #[serde(default = "default_truncate")]
    #[schemars(range(min = 1, max = 65_535))]
    pub truncate: u16,
}

const fn default_sample() -> u32 {
    1
}

const fn default_truncate() -> u16 {
    u16::MAX
}

const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// A place that copies can be sent to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mirror {
    /// Its name.
    pub name: String,
    /// What it is.
    pub target: MirrorTarget,
    /// One in so many packets.
    pub sample: u32,
    /// Bytes of each, at most.
    pub truncate: u16,
}

/// The kinds of places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MirrorTarget {
    /// A port.
    Port {
        /// Position in [`super::Config::ports`].
        port: usize,
        /// VLAN ID.
        vlan: Option<u16>,
        /// The probe's MAC address.
        mac: MacAddr,
    },
    /// A GTP-U tunnel.
    Gtpu {
        /// The far end.
        destination: IpAddr,
        /// Its TEID.
        teid: Teid,
    },
    /// A GRE tunnel.
    Gre {
        /// The far end.
        destination: IpAddr,
        /// Its key.
        key: Option<u32>,
    },
    /// An ERSPAN session.
    Erspan {
        /// The far end.
        destination: IpAddr,
        /// Its ID.
        session: u16,
    },
    /// Files.
    Pcapng {
        /// What their names are made of.
        path: PathBuf,
        /// The longest that each becomes.
        max_bytes: u64,
    },
}

impl Check<'_> {
    pub(super) fn mirrors(&mut self, file: &File) -> Vec<Mirror> {
        self.names("mirror", file.mirror.iter().map(|mirror| mirror.name.as_str()));
        let mut mirrors = Vec::new();
        for (index, section) in file.mirror.iter().enumerate() {
            self.unused_keys(index, section);
            let Some(target) = self.target(file, index, section) else { continue };
            let (name, sample, truncate) = (section.name.clone(), section.sample, section.truncate);
            mirrors.push(Mirror { name, target, sample, truncate });
        }
        mirrors
    }

    /// Keys of another kind are a misunderstanding.
    fn unused_keys(&mut self, index: usize, section: &MirrorSection) {
        use MirrorKind::{Erspan, Gre, Gtpu, Pcapng, Port};
        let keys: [(&'static str, bool, &[MirrorKind]); 9] = [
            ("port", section.port.is_some(), &[Port]),
            ("vlan", section.vlan.is_some(), &[Port]),
            ("mac", section.mac.is_some(), &[Port]),
            ("destination", section.destination.is_some(), &[Gtpu, Gre, Erspan]),
            ("teid", section.teid.is_some(), &[Gtpu]),
            ("key", section.key.is_some(), &[Gre]),
            ("session-id", section.session_id.is_some(), &[Erspan]),
            ("path", section.path.is_some(), &[Pcapng]),
            ("max-bytes", section.max_bytes.is_some(), &[Pcapng]),
        ];
        for (key, given, kinds) in keys {
            if given && !kinds.contains(&section.to) {
                self.wrong(&way!["mirror", index, key], Wrong::MirrorKey { key, kind: section.to.name() });
            }
        }
    }

    fn target(&mut self, file: &File, index: usize, section: &MirrorSection) -> Option<MirrorTarget> {
        let mut need = |key: &'static str, given: bool| {
            if !given {
                let wrong = Wrong::MissingKey { key: key.into(), section: "[[mirror]]".into() };
                self.wrong(&way!["mirror", index], wrong);
            }
        };
        match section.to {
            MirrorKind::Port => {
                need("port", section.port.is_some());
                need("mac", section.mac.is_some());
            }
            MirrorKind::Gtpu => {
                need("destination", section.destination.is_some());
                need("teid", section.teid.is_some());
            }
            MirrorKind::Gre => need("destination", section.destination.is_some()),
            MirrorKind::Erspan => {
                need("destination", section.destination.is_some());
                need("session-id", section.session_id.is_some());
            }
            MirrorKind::Pcapng => need("path", section.path.is_some()),
        }
        Some(match section.to {
            MirrorKind::Port => {
                let (name, mac) = (section.port.as_ref()?, section.mac?);
                let Some(port) = file.port.iter().position(|port| port.name == *name) else {
                    let known = file.port.iter().map(|port| port.name.clone()).collect();
                    let wrong = Wrong::UnknownName { kind: "port", name: name.clone(), known };
                    self.wrong(&way!["mirror", index, "port"], wrong);
                    return None;
                };
                MirrorTarget::Port { port, vlan: section.vlan, mac }
            }
            MirrorKind::Gtpu => {
                MirrorTarget::Gtpu { destination: section.destination?, teid: Teid(section.teid?) }
            }
            MirrorKind::Gre => MirrorTarget::Gre { destination: section.destination?, key: section.key },
            MirrorKind::Erspan => {
                MirrorTarget::Erspan { destination: section.destination?, session: section.session_id? }
            }
            MirrorKind::Pcapng => MirrorTarget::Pcapng {
                path: section.path.clone()?,
                max_bytes: section.max_bytes.unwrap_or(DEFAULT_MAX_BYTES),
            },
        })
    }
}
