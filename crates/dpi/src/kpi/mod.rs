//! How well does it work?
//!
//! **Problem.** An operator who knows what a flow is wants to know how its user fares: how long answers take, what is lost and sent again, what a call
//! sounds like, which picture a film has. All of it shows in headers, sizes and times, even where the rest is ciphered.
//!
//! **Model.** A small struct for each measure, which is told of packets and of the time and can be asked at any time. None knows of the others, of flows
//! or of clocks. Each says what it measures, by whose definition, and what it leaves out.
//!
//! | struct | measures |
//! |---|---|
//! | [`tcp::Tcp`] | round trips, retransmissions, disorder, duplicate acknowledgements, windows, resets, octets |
//! | [`rate::Rate`] | throughput: smoothed, and of the best second |
//! | [`rtp::Rtp`] | loss, disorder and jitter of a media stream, and which codec it has |
//! | [`voice`] | what a call with such loss and delay sounds like: R and MOS |
//! | [`video::Video`] | bit rate and likely resolution of a film that comes in chunks |
//! | [`flow::Measures`] | all of these, as far as they fit a flow: what [`Options::measures`](crate::Options) asks for |
//!
//! **Cost.** A few nanoseconds and 16 to 128 octets each.
//!
//! **When not to use it.** To bill or to punish: these are observations from one place of a path; what happened beyond it is inferred.

pub mod flow;
pub mod rate;
pub mod rtp;
pub mod tcp;
pub mod video;
pub mod voice;

#[cfg(test)]
mod judge;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Side;
    use packet::tcp::TcpFlags;
    use proptest::prelude::*;
    use tables::Nanos;

    proptest! {
        #[test]
        fn whatever_comes_is_measured_without_a_panic(
            segments in prop::collection::vec(
                (any::<bool>(), any::<[u32; 3]>(), any::<u8>(), any::<u16>(), any::<u64>()),
                0..60,
            ),
            datagrams in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), any::<u64>()), 0..60),
            clock in any::<Option<u32>>(),
        ) {
            let (mut tcp, mut rate, mut video) = (tcp::Tcp::default(), rate::Rate::default(), video::Video::default());
            for (client, [sequence, acknowledgement, length], flags, window, now) in segments {
                let (side, now) = (if client { Side::Client } else { Side::Server }, Nanos(now));
                let flags = TcpFlags(flags);
                tcp.push(side, &tcp::Segment { sequence, acknowledgement, flags, window, length }, now);
                rate.push(length.into(), now);
                video.push(side, length, now);
                prop_assert!(tcp.way(side).least_round_trip() <= tcp.way(side).round_trip().map(|it| it.saturating_add(8)));
            }
            video.estimate();
            let mut stream: Option<rtp::Rtp> = None;
            for (mut datagram, now) in datagrams {
                if let Some(first) = datagram.first_mut() {
                    *first = 0x80 | *first & 0x3f;
                }
                let Some(header) = rtp::Header::parse(&datagram) else { continue };
                match &mut stream {
                    Some(stream) => stream.push(&header, Nanos(now)),
                    None => stream = Some(rtp::Rtp::new(&header, clock, Nanos(now))),
                }
            }
            if let Some(stream) = stream {
                prop_assert!((0.0..=100.0).contains(&stream.lost_percent()));
                let _ = (stream.jitter(), stream.most_jitter());
            }
        }
    }
}
