//! `millrace ctl mirror`: begin, list and end copies of packets.

use crate::table::{Side, Table};
use api::{MirrorDirection, MirrorLine, MirrorRequest, MirrorSelection, SeidText};
use clap::{Subcommand, ValueEnum};
use std::fmt::Write;
use std::net::IpAddr;

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Copy the packets of a session, or of all, to a `[[mirror]]` of the configuration.
    Add(Add),
    /// List mirrors and what they copied.
    List,
    /// End a mirror.
    Remove {
        /// Its ID, as `list` prints it.
        id: u32,
    },
}

/// Arguments of `add`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("whose").required(true).args(["ue", "seid", "all"])))]
pub struct Add {
    /// Where to: the name of a `[[mirror]]`.
    #[arg(long, value_name = "NAME")]
    to: String,
    /// The session of the UE with this address.
    #[arg(long, value_name = "ADDRESS")]
    ue: Option<IpAddr>,
    /// The session with this UP SEID.
    #[arg(long)]
    seid: Option<SeidText>,
    /// All sessions.
    #[arg(long)]
    all: bool,
    /// Only these flows, as an SMF describes them (TS 29.212 §5.4.2): 'permit out 17 from any 53 to assigned'. Any of several
    /// filters is enough; each stands for both directions.
    #[arg(long, value_name = "FLOW")]
    filter: Vec<String>,
    /// Only packets from the UE, or to it.
    #[arg(long, value_enum, default_value_t = Direction::Both)]
    direction: Direction,
}

/// [`MirrorDirection`] as an argument.
#[derive(Clone, Copy, ValueEnum)]
enum Direction {
    /// From the UE.
    Up,
    /// To the UE.
    Down,
    /// Both.
    Both,
}

impl Command {
    /// What the UPF is asked.
    pub fn request(&self) -> MirrorRequest {
        match self {
            Self::Add(add) => MirrorRequest::Add(MirrorSelection {
                to: add.to.clone(),
                ue: add.ue,
                seid: add.seid,
                all: add.all,
                filters: add.filter.clone(),
                direction: match add.direction {
                    Direction::Up => MirrorDirection::Up,
                    Direction::Down => MirrorDirection::Down,
                    Direction::Both => MirrorDirection::Both,
                },
            }),
            Self::List => MirrorRequest::List,
            Self::Remove { id } => MirrorRequest::Remove { id: *id },
        }
    }
}

/// Mirrors for people.
pub fn shown(mirrors: &[MirrorLine]) -> String {
    if mirrors.is_empty() {
        return "Nothing is mirrored.\n".into();
    }
    let mut table = Table::new(&[
        ("ID", Side::Right),
        ("TO", Side::Left),
        ("TARGET", Side::Left),
        ("OF", Side::Left),
        ("DIRECTION", Side::Left),
        ("PACKETS", Side::Right),
        ("BYTES", Side::Right),
        ("CUT", Side::Right),
        ("PASSED OVER", Side::Right),
        ("LOST", Side::Right),
    ]);
    let mut notes = String::new();
    for line in mirrors {
        let whose = line.seid.map_or_else(|| "all".into(), |seid| seid.to_string());
        let filters = if line.filters.is_empty() { "" } else { ", filtered" };
        table.row([
            line.id.to_string(),
            line.to.clone(),
            line.target.clone(),
            format!("{whose}{filters}"),
            line.direction.name().into(),
            line.packets.to_string(),
            line.bytes.to_string(),
            line.truncated.to_string(),
            line.sampled_out.to_string(),
            (line.no_buffer + line.no_route + line.not_written).to_string(),
        ]);
        let reasons = [
            (line.no_buffer, "no packet buffer was free"),
            (line.no_route, "no way leads to the target"),
            (line.not_written, "not written to the file"),
        ];
        // Writing to a string doesn't fail.
        for (count, reason) in reasons.iter().filter(|(count, _)| *count > 0) {
            let _ = writeln!(notes, "Mirror {}: {count} lost, {reason}.", line.id);
        }
        if let Some(error) = &line.error {
            let _ = writeln!(notes, "Mirror {}: {error}.", line.id);
        }
    }
    format!("{table}{notes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_and_what_is_wrong_with_them() {
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
