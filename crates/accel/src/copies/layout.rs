//! How a copy lies in a device's memory: a header, and behind it the regions of the table's [`Image`](tables::image::Image), each with room to grow.

use crate::constants::constants;
use tables::image::Kind;

constants! { "TABLE_", "src/copies/layout.rs";
    /// Word of the header: the kind of table, as [`tables::image::Kind`] numbers it.
    KIND = 0;
    /// Words of the header: the 16 parameters of its layout.
    PARAMETERS = 1;
    /// Words of the header: for each of three regions its first line, from the header on.
    REGIONS = 17;
    /// Words of the header: for each of three regions how many lines it has.
    LENGTHS = 20;
    /// Lines of the header.
    HEADER_LINES = 2;
    /// Words of a line.
    LINE = 16;
    /// The most regions.
    MOST_REGIONS = 3;
    /// Words of the longest key.
    MOST_KEY = 10;
    /// The answer where nothing is found.
    NONE = 0xffffffff;
    /// [`Kind::Flow4`].
    FLOW4 = 1;
    /// [`Kind::Flow6`].
    FLOW6 = 2;
    /// [`Kind::Link`].
    LINK = 3;
    /// [`Kind::Lpm4`].
    LPM4 = 4;
    /// [`Kind::Lpm6`].
    LPM6 = 5;
    /// [`Kind::Memo`].
    MEMO = 6;
}

const _: () = {
    assert!(FLOW4 == Kind::Flow4 as usize && FLOW6 == Kind::Flow6 as usize && LINK == Kind::Link as usize);
    assert!(LPM4 == Kind::Lpm4 as usize && LPM6 == Kind::Lpm6 as usize);
    assert!(MEMO == Kind::Memo as usize);
    assert!(LINE == tables::image::LINE);
};

/// Words of a key, in the order of `tables::image`: of a flow or a link as the tables' keys give them (`words`), of a route the address, the first octet in the
/// highest bits, of a memo its two halves, the lower one first.
pub const fn key_words(kind: Kind) -> usize {
    match kind {
        Kind::Flow4 | Kind::Link | Kind::Lpm6 => 4,
        Kind::Flow6 => MOST_KEY,
        Kind::Lpm4 => 1,
        Kind::Memo => 2,
    }
}

/// All kinds.
pub const KINDS: [Kind; 6] = [Kind::Flow4, Kind::Flow6, Kind::Link, Kind::Lpm4, Kind::Lpm6, Kind::Memo];
