//! PFCP's seconds as people write time.

use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// NTP seconds (since 1900) of 1970-01-01.
pub const NTP_AT_1970: u64 = 2_208_988_800;

/// NTP seconds, modulo 2^32, as UTC in the form of RFC 3339. Numbers before 1970 belong to era 1, which begins on
/// 2036-02-07 (RFC 5905 §6).
pub fn utc(ntp: u32) -> String {
    let ntp = u64::from(ntp);
    let since_1970 = if ntp >= NTP_AT_1970 { ntp - NTP_AT_1970 } else { ntp + (1 << 32) - NTP_AT_1970 };
    timestamp(Duration::from_secs(since_1970)).to_string()
}

/// Time since 1970 as UTC to the millisecond.
pub fn utc_millis(since_1970: Duration) -> String {
    format!("{:.3}", timestamp(since_1970))
}

/// The latest that can be written down, for what is later.
fn timestamp(since_1970: Duration) -> Timestamp {
    SignedDuration::try_from(since_1970).and_then(Timestamp::from_duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        // `date -u -d @N`, in both eras.
        for (unix, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_795_303_109, "2026-11-21T23:18:29Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc((unix + NTP_AT_1970) as u32), text);
        }
        assert_eq!(utc(u32::MAX), "2036-02-07T06:28:15Z");
        assert_eq!(utc(0), "2036-02-07T06:28:16Z");
    }

    #[test]
    fn milliseconds_are_cut_and_not_rounded() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (7_999_999, "1970-01-01T00:00:00.007Z"),
            (999_999_999, "1970-01-01T00:00:00.999Z"),
        ] {
            assert_eq!(utc_millis(Duration::from_nanos(nanos)), text);
        }
        assert_eq!(utc_millis(Duration::from_millis(1_795_303_109_042)), "2026-11-21T23:18:29.042Z");
        // A clock that is set to nonsense ends nothing.
        assert_eq!(utc_millis(Duration::MAX), "9999-12-30T22:00:00.999Z");
    }
}
