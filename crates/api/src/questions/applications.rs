//! What applications' traffic came to.

use super::Question;
use crate::table::{Page, columns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Show what each application's traffic came to, the largest first: of flows that are looked into.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct Applications {
    /// Only so many; what the others came to is added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub top: Option<u32>,
}

impl Question for Applications {
    const NAME: &'static str = "applications";
    const SEE: &'static str = "dpi.md#inside-the-upf";
    type Answer = ApplicationList;

    fn show(&self, told: &ApplicationList) -> Page {
        let mut page = if told.applications.is_empty() {
            Page::text(format!("Nothing was found to be of any application since {}.\n", told.since))
        } else {
            Page::table(&told.applications)
        };
        let ApplicationList { since, forwarded_bytes, under_question, behind_milliseconds, .. } = told;
        let bytes: u64 = told.applications.iter().map(ApplicationLine::bytes).sum();
        let share = percent(bytes, *forwarded_bytes);
        let mut text = format!(
            "\nSince {since}: {share} of all {forwarded_bytes} bytes forwarded, in flows that are looked into.\n"
        );
        // Writing to a string doesn't fail.
        if *under_question > 0 {
            let _ = writeln!(text, "{under_question} conversations more are under question.");
        }
        if *behind_milliseconds > BEHIND {
            let seconds = *behind_milliseconds as f64 / 1e3;
            let _ = writeln!(text, "Flows that live were looked at {seconds:.1} s ago: there are many.");
        }
        page.say(text);
        page
    }
}

/// Who asks is told if flows were looked at longer ago than that, in milliseconds.
const BEHIND: u64 = 1_000;

/// What applications' traffic came to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationList {
    /// Since when it was counted: when the UPF started.
    pub since: String,
    /// By bytes, the largest first.
    pub applications: Vec<ApplicationLine>,
    /// Packets that were forwarded in all, also those of flows that nobody looks into.
    pub forwarded_packets: u64,
    /// Their bytes.
    pub forwarded_bytes: u64,
    /// Conversations of which it isn't known yet whose they are: what they have carried is not counted yet.
    pub under_question: u64,
    /// What flows that live have carried is as it was so long ago, or later.
    pub behind_milliseconds: u64,
}

/// What an application's traffic came to, all workers together.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationLine {
    /// Its name; none: see `of`.
    pub application: Option<String>,
    /// Whose this is.
    pub of: SumOf,
    /// Conversations that were found to be of it: both directions of a connection are one.
    pub conversations: u64,
    /// Of these, conversations that live now.
    pub live: u64,
    /// Packets from UEs.
    pub uplink_packets: u64,
    /// Their bytes.
    pub uplink_bytes: u64,
    /// Packets to UEs.
    pub downlink_packets: u64,
    /// Their bytes.
    pub downlink_bytes: u64,
}

impl ApplicationLine {
    /// Bytes of both directions.
    pub const fn bytes(&self) -> u64 {
        self.uplink_bytes + self.downlink_bytes
    }

    /// Adds another one's.
    pub const fn add(&mut self, other: &Self) {
        self.conversations += other.conversations;
        self.live += other.live;
        self.uplink_packets += other.uplink_packets;
        self.uplink_bytes += other.uplink_bytes;
        self.downlink_packets += other.downlink_packets;
        self.downlink_bytes += other.downlink_bytes;
    }
}

/// Whose a sum is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SumOf {
    /// One application.
    #[default]
    Application,
    /// What was looked into, and is no application's that is known.
    Unknown,
    /// All other applications together.
    Others,
}

impl SumOf {
    /// What stands in place of a name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "",
            Self::Unknown => "(unknown)",
            Self::Others => "(others)",
        }
    }
}

columns!(ApplicationLine, |line| {
    "APPLICATION" Left line.application.as_deref().unwrap_or_else(|| line.of.name()),
    "CONVERSATIONS" Right line.conversations,
    "LIVE" Right line.live,
    "UL PACKETS" Right line.uplink_packets,
    "UL BYTES" Right line.uplink_bytes,
    "DL PACKETS" Right line.downlink_packets,
    "DL BYTES" Right line.downlink_bytes,
});

/// So much of that, for people.
fn percent(part: u64, of: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / of.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_and_what_is_unknown() {
        let line = |name: Option<&str>, of, bytes: u64| ApplicationLine {
            application: name.map(Into::into),
            of,
            conversations: 12,
            live: 3,
            uplink_packets: 100,
            uplink_bytes: bytes / 10,
            downlink_packets: 1_000,
            downlink_bytes: bytes - bytes / 10,
        };
        let told = ApplicationList {
            since: "2026-11-23T12:00:00Z".into(),
            applications: vec![
                line(Some("youtube"), SumOf::Application, 2_000_000),
                line(Some("shop\x1b[2J"), SumOf::Application, 90_000),
                line(None, SumOf::Unknown, 8_000),
                line(None, SumOf::Others, 2_000),
            ],
            forwarded_packets: 10_000,
            forwarded_bytes: 3_000_000,
            under_question: 2,
            behind_milliseconds: 2_345,
        };
        insta::assert_snapshot!(Applications::default().show(&told));
        let nothing = ApplicationList { since: told.since, ..ApplicationList::default() };
        insta::assert_snapshot!("nothing", Applications::default().show(&nothing));
    }
}
