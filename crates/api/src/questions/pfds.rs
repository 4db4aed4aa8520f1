//! How SMFs say that applications are told.

use super::Question;
use crate::table::{Page, columns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show the packet flow descriptions (PFDs) that SMFs have given of applications.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Pfds {
    /// Of this application only.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(value_name = "APPLICATION"))]
    pub application: Option<String>,
}

impl Question for Pfds {
    const NAME: &'static str = "pfds";
    const SEE: &'static str = "n4.md#pfds";
    type Answer = PfdList;

    fn show(&self, PfdList { pfds }: &PfdList) -> Page {
        if pfds.is_empty() { Page::text("SMFs have given no PFDs.\n") } else { Page::table(pfds) }
    }
}

/// All PFDs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PfdList {
    /// By Application ID; of one application, any of them is enough.
    pub pfds: Vec<PfdLine>,
}

/// One way to tell an application.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PfdLine {
    /// Application ID.
    pub application: String,
    /// The Node ID of the SMF that gave it.
    pub smf: String,
    /// When.
    pub since: String,
    /// `flow`, `url`, `domain` or `custom` (which nobody here goes by).
    pub kind: String,
    /// Of a domain: where its name has to be found, such as `TLS_SNI`; `None`: anywhere.
    pub protocol: Option<String>,
    /// The flow description, the URL, the name, or a custom content, with its octets escaped that are no text.
    pub text: String,
}

columns!(PfdLine, |line| {
    "APPLICATION" Left line.application,
    "SMF" Left line.smf,
    "SINCE" Left line.since,
    "KIND" Left line.kind,
    "PROTOCOL" Left line.protocol,
    "PFD" Left line.text,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pfds() {
        let line = |kind: &str, protocol: Option<&str>, text: &str| PfdLine {
            application: "video".into(),
            smf: "smf.example.org".into(),
            since: "2026-11-23T12:00:00Z".into(),
            kind: kind.into(),
            protocol: protocol.map(Into::into),
            text: text.into(),
        };
        let pfds = vec![
            line("flow", None, "permit out tcp from 203.0.113.0/24 443 to assigned"),
            line("domain", Some("TLS_SNI"), "video.example\x1b[2J"),
        ];
        insta::assert_snapshot!(Pfds::default().show(&PfdList { pfds }));
    }
}
