//! A film that comes in chunks (DASH, HLS): which bit rate does it have, and which resolution may that be?
//!
//! A player asks for one chunk after another, a few seconds of film each. First it fills its buffer as fast as it can; then it waits until there is room
//! again, so that chunks come as fast as they are played. In this phase what a chunk weighs, by the time until the next one is asked for, is the film's bit
//! rate. It shows on a ciphered connection, too: requests are what goes up after something has come down.
//!
//! This is an estimate. It is wrong where several connections carry one film in turn, where chunks of sound are asked for alongside (they count
//! as picture), where requests overlap, and where the user stops or skips. Which resolution a rate means depends on codec and film.

use crate::classify::Side;
use tables::Nanos;

/// What goes up is a request if it has so many octets; less is an acknowledgement of HTTP/2 or QUIC.
const REQUEST: u32 = 100;
/// What comes down is a chunk if it has so many octets; less is a manifest or an advertisement's pixel.
const CHUNK: u32 = 48 << 10;
/// A player that is silent for so long after a chunk waits for room, in microseconds.
const WAIT: u32 = 400_000;
/// One that is silent for longer has been stopped.
const STOPPED: u32 = 30_000_000;

counters::labels! {
    /// How sure an estimate is.
    pub enum Confidence: "confidence" {
        Low = "low", "Fewer than three chunks.";
        Medium = "medium", "Fewer than eight, or they come irregularly.";
        High = "high", "Eight chunks or more, which come regularly.";
    }
}

counters::labels! {
    /// What a bit rate usually shows in H.264; newer codecs show the same with half of it.
    pub enum Resolution: "resolution" {
        P240 = "240p", "Less than 0.3 Mbit/s.";
        P360 = "360p", "0.3 Mbit/s and more.";
        P480 = "480p", "0.6 Mbit/s and more.";
        P720 = "720p", "2.5 Mbit/s and more.";
        P1080 = "1080p", "5.2 Mbit/s and more.";
        P2160 = "2160p", "12 Mbit/s and more.";
    }
}

impl Resolution {
    /// Of a bit rate. The limits lie between the steps that Apple's HLS Authoring Specification for H.264 has, in bits per second.
    pub const fn of(bits_per_second: u64) -> Self {
        match bits_per_second / 100_000 {
            0..3 => Self::P240,
            3..6 => Self::P360,
            6..25 => Self::P480,
            25..52 => Self::P720,
            52..120 => Self::P1080,
            _ => Self::P2160,
        }
    }
}

/// What is thought of a film.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Estimate {
    /// Its bit rate.
    pub bits_per_second: u64,
    /// Its resolution.
    pub resolution: Resolution,
    /// How sure that is.
    pub confidence: Confidence,
}

/// A connection that may carry a film. Times are microseconds modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Video {
    /// When the last chunk was asked for, and when something of it came last.
    asked: u32,
    came: u32,
    /// Octets of it.
    octets: u32,
    /// Octets since a chunk was last asked for that the player waited with, smaller answers included.
    since: u32,
    /// Chunks that came as fast as they are played.
    steady: u16,
    /// All chunks.
    pub chunks: u16,
    /// Octets and microseconds of the steady ones; the older ones count less and less.
    weight: u64,
    time: u64,
    /// Sums of microseconds between them, and of how much each differs from the mean before it.
    deviation: u64,
}

const _: () = assert!(size_of::<Video>() <= 64);

impl Video {
    /// A packet's payload.
    pub fn push(&mut self, side: Side, octets: u32, now: Nanos) {
        let now = (now.0 / 1_000) as u32;
        match side {
            Side::Server => {
                self.octets = self.octets.saturating_add(octets);
                self.came = now;
            }
            Side::Client if octets >= REQUEST => self.ask(now),
            Side::Client => {}
        }
    }

    fn ask(&mut self, now: u32) {
        let octets = std::mem::take(&mut self.octets);
        self.since = self.since.saturating_add(octets);
        if octets < CHUNK {
            // Nothing came yet, or something small: the time goes on.
            if self.chunks == 0 {
                (self.asked, self.since) = (now, 0);
            }
            return;
        }
        self.chunks = self.chunks.saturating_add(1);
        let (between, waited) = (now.wrapping_sub(self.asked), now.wrapping_sub(self.came));
        if (WAIT..STOPPED).contains(&waited) {
            let mean = self.time.checked_div(u64::from(self.steady)).unwrap_or(u64::from(between));
            self.deviation += u64::from(between).abs_diff(mean);
            self.weight += u64::from(self.since);
            self.time += u64::from(between);
            self.steady += 1;
            if self.steady == 64 {
                self.steady /= 2;
                (self.weight, self.time, self.deviation) =
                    (self.weight / 2, self.time / 2, self.deviation / 2);
            }
        }
        (self.asked, self.since) = (now, 0);
    }

    /// What is thought of the film; `None`: no chunk has come yet that the player waited with.
    pub fn estimate(&self) -> Option<Estimate> {
        let bits_per_second = (self.weight * 8_000_000).checked_div(self.time)?;
        let regular = self.deviation * 4 <= self.time;
        let confidence = match self.steady {
            ..3 => Confidence::Low,
            8.. if regular => Confidence::High,
            _ => Confidence::Medium,
        };
        Some(Estimate { bits_per_second, resolution: Resolution::of(bits_per_second), confidence })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Asks for a chunk, which comes at 100 Mbit/s; when it is there.
    fn chunk(video: &mut Video, at: u64, octets: u32) -> u64 {
        video.push(Side::Client, 500, Nanos(at * 1_000_000));
        let packets = octets / 1_250;
        for packet in 0..packets {
            video.push(Side::Server, 1_250, Nanos((at + 30) * 1_000_000 + u64::from(packet) * 100_000));
        }
        at + 30 + u64::from(packets) / 10
    }

    #[test]
    fn what_is_played_is_estimated_once_the_buffer_is_full() {
        // Four seconds of film at 3 Mbit/s each: 1.5 MB.
        let mut video = Video::default();
        let mut at = 1_000;
        for _ in 0..6 {
            at = chunk(&mut video, at, 1_500_000);
        }
        // As fast as they can be had: they tell nothing yet.
        assert_eq!((video.estimate(), video.chunks), (None, 5));
        for round in 0..12 {
            at += 4_000;
            chunk(&mut video, at, 1_500_000);
            if round == 1 {
                assert_eq!(video.estimate().unwrap().confidence, Confidence::Low);
            }
        }
        let estimate = video.estimate().unwrap();
        assert!((2_900_000..3_100_000).contains(&estimate.bits_per_second), "{estimate:?}");
        assert_eq!((estimate.resolution, estimate.confidence), (Resolution::P720, Confidence::High));
    }

    #[test]
    fn small_answers_and_short_requests_are_no_chunks() {
        let mut video = Video::default();
        for at in 0..100 {
            video.push(Side::Client, 500, Nanos(at * Nanos::SECOND));
            video.push(Side::Server, 20_000, Nanos(at * Nanos::SECOND + 1));
        }
        assert_eq!((video.chunks, video.estimate()), (0, None));
        // Acknowledgements in between don't cut a chunk.
        let mut video = Video::default();
        for at in 0..1000u64 {
            video.push(Side::Server, 1_000, Nanos(at * 1_000_000));
            video.push(Side::Client, 40, Nanos(at * 1_000_000));
        }
        video.push(Side::Client, 500, Nanos(3 * Nanos::SECOND));
        assert_eq!(video.chunks, 1);
    }

    #[test]
    fn irregular_chunks_are_less_sure() {
        let mut video = Video::default();
        let mut at = 1_000;
        for round in 0..20 {
            chunk(&mut video, at, 900_000);
            at += if round % 2 == 0 { 1_000 } else { 9_000 };
        }
        assert_eq!(video.estimate().unwrap().confidence, Confidence::Medium);
    }

    #[test]
    fn resolutions_have_limits() {
        let of = |kilobits: u64| Resolution::of(kilobits * 1_000).label();
        assert_eq!(
            [of(299), of(300), of(600), of(2_500), of(5_200), of(12_000)],
            ["240p", "360p", "480p", "720p", "1080p", "2160p"]
        );
    }
}
