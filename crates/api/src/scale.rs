//! What `ctl scale` asks and tells.

use serde::{Deserialize, Serialize};

/// Another number of workers that own shards; neither: only a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScaleRequest {
    /// So many, until they are released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u16>,
    /// The number follows the load again, if `scaling.automatic` says so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub release: bool,
}

/// Who owns shards, and how moves of shards went since the process started.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
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
