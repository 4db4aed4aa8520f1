//! How many workers own shards, and how moves of shards went.

use super::Question;
use crate::table::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Show how many workers own shards and how moves of shards went; or have another number of workers own them, without
/// losing a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct Scale {
    /// How many workers, until they are released.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(value_parser = clap::value_parser!(u16).range(1..)))]
    pub workers: Option<u16>,
    /// The number follows the load again, if `scaling.automatic` says so; else it stays.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "workers"))]
    pub release: bool,
}

impl Question for Scale {
    const NAME: &'static str = "scale";
    const SEE: &'static str = "moves.md";
    type Answer = ScaleStatus;

    fn show(&self, told: &ScaleStatus) -> Page {
        let ScaleStatus { model, workers, dispatchers, active, .. } = told;
        let mut text = format!("model        {model}, {workers} threads");
        // Writing to a string doesn't fail.
        if *dispatchers > 0 {
            let _ = write!(text, ", {dispatchers} of them dispatchers");
        }
        let why = match (told.asked, told.automatic) {
            (Some(asked), _) => format!("{asked} asked for"),
            (None, true) => "following the load".into(),
            (None, false) => "until asked".into(),
        };
        let _ = writeln!(text, "\nactive       {active} ({why})\nmoving       {} shards", told.moving);
        let ScaleStatus { moves, shards, parked, .. } = told;
        let _ = writeln!(
            text,
            "moved        {shards} shards in {moves} moves; {parked} packets parked meanwhile"
        );
        let ScaleStatus { pause_p50_us, pause_p99_us, pause_max_us, .. } = told;
        let _ = writeln!(
            text,
            "pause        {pause_p50_us:.1} us median, {pause_p99_us:.1} us p99, {pause_max_us:.1} us at most"
        );
        let ScaleStatus { overflowed, hurried, given_up, .. } = told;
        let _ = writeln!(
            text,
            "not so well  {overflowed} packets found no room to park, {hurried} moves were hurried, {given_up} not begun"
        );
        Page::text(text)
    }
}

/// Who owns shards, and how moves of shards went since the process started.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ScaleStatus {
    /// `run-to-completion` or `pipeline`.
    pub model: String,
    /// Threads, dispatchers included.
    pub workers: u16,
    /// Those that only receive.
    pub dispatchers: u16,
    /// Workers that own shards, or will when the move that goes on has ended.
    pub active: u16,
    /// The number that was asked for by hand.
    pub asked: Option<u16>,
    /// Without such a request the number follows the load.
    pub automatic: bool,
    /// Shards that are moving, or waiting to.
    pub moving: u64,
    /// Moves so far: of some shards from one worker to another.
    pub moves: u64,
    /// Shards that they moved.
    pub shards: u64,
    /// Packets that waited meanwhile.
    pub parked: u64,
    /// Packets that found no room to: dropped as `move-parking-full`.
    pub overflowed: u64,
    /// Moves in which a worker didn't answer in time, so that packets may have been overtaken.
    pub hurried: u64,
    /// Moves that did not begin, because the giver didn't answer.
    pub given_up: u64,
    /// How long the moved shards' packets waited at most, in microseconds: in half of the last moves not longer than this.
    pub pause_p50_us: f64,
    /// In 99 of 100.
    pub pause_p99_us: f64,
    /// In all of them.
    pub pause_max_us: f64,
}
