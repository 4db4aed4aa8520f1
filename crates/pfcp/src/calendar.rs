//! PFCP's seconds as people write time.

use std::fmt::Write;
use std::time::Duration;

/// NTP seconds (since 1900) of 1970-01-01.
pub const NTP_AT_1970: u64 = 2_208_988_800;

/// NTP seconds, modulo 2^32, as UTC in the form of RFC 3339. Numbers before 1970 belong to era 1, which begins on
/// 2036-02-07 (RFC 5905 §6).
pub fn utc(ntp: u32) -> String {
    let ntp = u64::from(ntp);
    let since_1970 = if ntp >= NTP_AT_1970 { ntp - NTP_AT_1970 } else { ntp + (1 << 32) - NTP_AT_1970 };
    let (mut days, seconds) = (since_1970 / 86_400, since_1970 % 86_400);
    let is_leap =
        |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    // At most 136 years: walking is cheap, and plainly right.
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

/// Time since 1970 as UTC to the millisecond.
pub fn utc_millis(since_1970: Duration) -> String {
    let mut text = utc((NTP_AT_1970 + since_1970.as_secs()) as u32);
    text.pop();
    let _ = write!(text, ".{:03}Z", since_1970.subsec_millis());
    text
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
}
