//! Copies of packets.

use super::Question;
use crate::SeidText;
use crate::table::{Page, columns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Copy packets of chosen sessions to a port, a tunnel or a file.
#[cfg(feature = "clap")]
#[derive(Clone, Debug, clap::Args)]
pub struct MirrorCommand {
    #[command(subcommand)]
    what: Mirror,
}

#[cfg(feature = "clap")]
impl From<MirrorCommand> for super::Request {
    fn from(command: MirrorCommand) -> Self {
        command.what.into()
    }
}

/// Begin, tell or end copies of packets of chosen sessions. Each of these is answered with the mirrors that it was about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Subcommand))]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Mirror {
    /// Copy the packets of a session, or of all, to a `[[mirror]]` of the configuration.
    Add(MirrorSelection),
    /// List mirrors and what they copied.
    List,
    /// End a mirror.
    Remove {
        /// Its ID, as `list` prints it.
        id: u32,
    },
}

impl Question for Mirror {
    const NAME: &'static str = "mirror";
    const ANSWER: &'static str = "mirrors";
    const SEE: &'static str = "mirroring.md";
    type Answer = MirrorList;

    fn show(&self, MirrorList { mirrors }: &MirrorList) -> Page {
        if mirrors.is_empty() {
            return Page::text("Nothing is mirrored.\n");
        }
        let mut page = Page::table(mirrors);
        for line in mirrors {
            let reasons = [
                (line.no_buffer, "no packet buffer was free"),
                (line.no_route, "no way leads to the target"),
                (line.not_written, "not written to the file"),
            ];
            for (count, reason) in reasons.iter().filter(|(count, _)| *count > 0) {
                page.say(format!("Mirror {}: {count} lost, {reason}.\n", line.id));
            }
            if let Some(error) = &line.error {
                page.say(format!("Mirror {}: {error}.\n", line.id));
            }
        }
        page
    }
}

/// What is to be copied where to: the packets of one session or of all.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(
    feature = "clap",
    derive(clap::Args),
    command(group(clap::ArgGroup::new("whose").required(true).args(["ue", "seid", "all"])))
)]
#[serde(deny_unknown_fields)]
pub struct MirrorSelection {
    /// Where to: the name of a `[[mirror]]` of the configuration.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub to: String,
    /// The session of the UE with this address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ADDRESS"))]
    pub ue: Option<IpAddr>,
    /// The session with this UP SEID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long))]
    pub seid: Option<SeidText>,
    /// All sessions.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub all: bool,
    /// Only these flows, as an SMF describes them (TS 29.212 §5.4.2): 'permit out 17 from any 53 to assigned'. Any of several
    /// filters is enough; each stands for both directions.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long = "filter", value_name = "FLOW"))]
    pub filters: Vec<String>,
    /// Only packets of this application, as far as flows are looked into. Any of several is enough.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long = "application", value_name = "NAME"))]
    pub applications: Vec<String>,
    /// Only packets from the UE, or to it.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = MirrorDirection::Both))]
    pub direction: MirrorDirection,
}

/// Which packets of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum MirrorDirection {
    /// From the UE.
    Up,
    /// To the UE.
    Down,
    /// Both.
    #[default]
    Both,
}

impl MirrorDirection {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
        }
    }
}

/// The mirrors that were asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MirrorList {
    /// In order of ID.
    pub mirrors: Vec<MirrorLine>,
}

/// A mirror and what it did.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MirrorLine {
    /// What it is removed by.
    pub id: u32,
    /// The target's name.
    pub to: String,
    /// What the target is.
    pub target: String,
    /// The session; none: all.
    pub seid: Option<SeidText>,
    /// As given.
    pub filters: Vec<String>,
    /// As given.
    #[serde(default)]
    pub applications: Vec<String>,
    /// As given.
    pub direction: MirrorDirection,
    /// One in this many packets.
    pub sample: u32,
    /// Bytes of each, at most.
    pub truncate: u16,
    /// Copies made.
    pub packets: u64,
    /// Bytes of the UE's packets in them.
    pub bytes: u64,
    /// Packets that matched and were passed over by sampling.
    pub sampled_out: u64,
    /// Copies that are shorter than their packet.
    pub truncated: u64,
    /// Copies that were not made: no packet buffer was free.
    pub no_buffer: u64,
    /// Copies that were not made: no way leads to the target.
    pub no_route: u64,
    /// Copies that did not get into the file: its writer didn't keep up, the file is at its limit, or the disk failed.
    pub not_written: u64,
    /// What went wrong with the file.
    pub error: Option<String>,
}

columns!(MirrorLine, |line| {
    "ID" Right line.id,
    "TO" Left line.to,
    "TARGET" Left line.target,
    "OF" Left whose(line),
    "DIRECTION" Left line.direction.name(),
    "PACKETS" Right line.packets,
    "BYTES" Right line.bytes,
    "CUT" Right line.truncated,
    "PASSED OVER" Right line.sampled_out,
    "LOST" Right line.no_buffer + line.no_route + line.not_written,
});

fn whose(line: &MirrorLine) -> String {
    let whose = line.seid.map_or_else(|| "all".to_owned(), |seid| seid.to_string());
    let applications = match line.applications.as_slice() {
        [] => String::new(),
        [one] => format!(", {one}"),
        [first, others @ ..] => format!(", {first} and {} more", others.len()),
    };
    let filters = if line.filters.is_empty() { "" } else { ", filtered" };
    format!("{whose}{applications}{filters}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_and_what_is_wrong_with_them() {
        let shown =
            |lines: &[MirrorLine]| Mirror::List.show(&MirrorList { mirrors: lines.to_vec() }).to_string();
        assert_eq!(shown(&[]), "Nothing is mirrored.\n");
        let line = MirrorLine {
            id: 1,
            to: "analyser".into(),
            target: "erspan 203.0.113.50 session 7".into(),
            seid: Some(SeidText(0x2_0000_0001)),
            packets: 5,
            bytes: 640,
            truncated: 4,
            ..MirrorLine::default()
        };
        let full = MirrorLine {
            id: 2,
            to: "file".into(),
            target: "pcapng /tmp/a.pcapng".into(),
            seid: None,
            filters: vec!["permit out 17 from any to assigned".into()],
            sampled_out: 99,
            not_written: 3,
            error: Some("the file has reached its limit of 4096 bytes".into()),
            ..line.clone()
        };
        let text = shown(&[line, full]);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "ID TO TARGET OF DIRECTION PACKETS BYTES CUT PASSED OVER LOST",
                "1 analyser erspan 203.0.113.50 session 7 0x0000000200000001 both 5 640 4 0 0",
                "2 file pcapng /tmp/a.pcapng all, filtered both 5 640 4 99 3",
                "Mirror 2: 3 lost, not written to the file.",
                "Mirror 2: the file has reached its limit of 4096 bytes.",
            ]
        );
    }
}
