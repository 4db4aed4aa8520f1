//! How flows fare: of each, and of all together.

use dpi::classify::Side;
use dpi::kpi::flow::{Measures, Stream};
use dpi::kpi::tcp::Way;
use dpi::{Category, Protocol, Verdict};
use serde::Serialize;
use std::fmt::Write;
use tables::Nanos;

/// Values of one kind that are kept at most, to tell the middle one.
const VALUES: usize = 1_000_000;

/// How a flow fares. Octets and packets of "up" come from the client.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Quality {
    /// Bits in the best second, with IP headers.
    pub best_bits_up: u64,
    /// Likewise, to the client.
    pub best_bits_down: u64,
    /// Of a connection of TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpQuality>,
    /// Of media streams (RTP).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediaQuality>,
    /// Of a film that comes in pieces: an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoQuality>,
}

/// How a connection of TCP fares. Times are milliseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TcpQuality {
    /// From SYN to the acknowledgement of the SYN-ACK: the whole path at the beginning.
    pub handshake_ms: Option<f64>,
    /// From here to the client and back, smoothed.
    pub client_ms: Option<f64>,
    /// From here to the server and back, smoothed.
    pub server_ms: Option<f64>,
    /// Segments that were sent again, by the client.
    pub retransmissions_up: u32,
    /// By the server.
    pub retransmissions_down: u32,
    /// Segments that others have overtaken, of the client.
    pub out_of_order_up: u32,
    /// Of the server.
    pub out_of_order_down: u32,
    /// Segments by which the client says that it can take nothing.
    pub zero_windows_up: u32,
    /// By which the server does.
    pub zero_windows_down: u32,
    /// Acknowledgements that say the same again, of the client.
    pub duplicate_acks_up: u32,
    /// Of the server.
    pub duplicate_acks_down: u32,
    /// Segments that end it at once.
    pub resets: u32,
}

/// How a media stream fares.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MediaQuality {
    /// Who sends it: "client" or "server".
    pub from: &'static str,
    /// The source's number (SSRC).
    pub source: u32,
    /// Its codec, if SDP or the payload type tells.
    pub codec: Option<&'static str>,
    /// Which payload its last packet had.
    pub payload_type: u8,
    /// Packets that came.
    pub packets: u32,
    /// Packets that should have come and did not; less than none, if some came twice.
    pub lost: i32,
    /// Likewise, of 100.
    pub lost_percent: f64,
    /// Packets that others have overtaken.
    pub out_of_order: u32,
    /// Interarrival jitter (RFC 3550 §6.4.1) in the end.
    pub jitter_ms: Option<f64>,
    /// The most that it was.
    pub most_jitter_ms: Option<f64>,
    /// Mean opinion score, 1 to 4.5, of a call with this codec, loss and jitter (ITU-T G.107).
    pub mos: Option<f64>,
}

/// What a film looks like.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct VideoQuality {
    /// Its bit rate.
    pub bits_per_second: u64,
    /// What that shows in H.264.
    pub resolution: &'static str,
    /// How sure that is.
    pub confidence: &'static str,
    /// Pieces it came in.
    pub chunks: u16,
}

fn millis(micros: u32) -> f64 {
    rounded(f64::from(micros) / 1e3)
}

/// To three places: more is chance.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

impl Quality {
    /// Of a flow with this verdict; `last`: when its last packet came.
    pub fn of(measures: &Measures, verdict: &Verdict, category: Option<Category>, last: Nanos) -> Self {
        // The last second is over, too.
        let end = last.plus(2 * Nanos::SECOND);
        let best = |side| 8 * measures.rate(side).best(end);
        let tcp = measures.tcp().map(|tcp| {
            let (client, server): (&Way, &Way) = (tcp.way(Side::Client), tcp.way(Side::Server));
            TcpQuality {
                handshake_ms: tcp.handshake().map(millis),
                // What the server sends goes to the client and comes back acknowledged.
                client_ms: server.round_trip().map(millis),
                server_ms: client.round_trip().map(millis),
                retransmissions_up: client.retransmissions,
                retransmissions_down: server.retransmissions,
                out_of_order_up: client.out_of_order.into(),
                out_of_order_down: server.out_of_order.into(),
                zero_windows_up: client.zero_windows.into(),
                zero_windows_down: server.zero_windows.into(),
                duplicate_acks_up: client.duplicate_acks,
                duplicate_acks_down: server.duplicate_acks,
                resets: u32::from(client.resets) + u32::from(server.resets),
            }
        });
        let media = measures.streams(verdict.protocol).map(MediaQuality::of).collect();
        let is_film = category == Some(Category::Video)
            || matches!(verdict.protocol, Some(Protocol::Hls | Protocol::Dash));
        let video = measures.video().estimate().filter(|_| is_film).map(|it| VideoQuality {
            bits_per_second: it.bits_per_second,
            resolution: it.resolution.label(),
            confidence: it.confidence.label(),
            chunks: measures.video().chunks,
        });
        Self { best_bits_up: best(Side::Client), best_bits_down: best(Side::Server), tcp, media, video }
    }

    /// What of it strikes people, in a few words.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        if let Some(tcp) = &self.tcp {
            let trip = tcp.handshake_ms.or(tcp.server_ms);
            words.extend(trip.map(|it| format!("{it:.1} ms")));
            let counts = [
                (tcp.retransmissions_up + tcp.retransmissions_down, "sent again"),
                (tcp.out_of_order_up + tcp.out_of_order_down, "out of order"),
                (tcp.zero_windows_up + tcp.zero_windows_down, "zero windows"),
            ];
            words.extend(
                counts.into_iter().filter(|it| it.0 > 0).map(|(count, what)| format!("{count} {what}")),
            );
        }
        words.extend(self.media.iter().map(MediaQuality::words));
        if let Some(video) = &self.video {
            let rate = video.bits_per_second as f64 / 1e6;
            words.push(format!("{} at {rate:.1} Mbit/s ({})", video.resolution, video.confidence));
        }
        words.join(", ")
    }
}

impl MediaQuality {
    fn of(stream: &Stream) -> Self {
        let rtp = &stream.rtp;
        Self {
            from: if stream.side == Side::Client { "client" } else { "server" },
            source: rtp.source,
            codec: rtp.codec().map(|it| it.name),
            payload_type: rtp.payload_type,
            packets: rtp.received(),
            lost: rtp.lost(),
            lost_percent: rounded(rtp.lost_percent().into()),
            out_of_order: rtp.out_of_order,
            jitter_ms: rtp.jitter().map(millis),
            most_jitter_ms: rtp.most_jitter().map(millis),
            mos: rtp.opinion().map(|it| rounded(it.into())),
        }
    }

    /// In a few words.
    pub fn words(&self) -> String {
        let codec = self.codec.map_or_else(|| format!("type {}", self.payload_type), str::to_owned);
        let mut text = format!("{codec} {:.1} % lost", self.lost_percent);
        if let Some(jitter) = self.jitter_ms {
            let _ = write!(text, " {jitter:.1} ms jitter");
        }
        if let Some(mos) = self.mos {
            let _ = write!(text, " MOS {mos:.1}");
        }
        text
    }
}

/// A measure over all flows that have it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KpiLine {
    /// What is measured.
    pub kpi: &'static str,
    /// In what.
    pub unit: &'static str,
    /// Flows, or media streams, that have it; of what is counted, those with any.
    pub flows: u64,
    /// Of what is counted: all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Half of them have more.
    pub median: f64,
    /// One of twenty is worse.
    pub p95: f64,
    /// The worst one.
    pub worst: f64,
}

api::columns!(KpiLine, |it| {
    "KPI" Left it.kpi,
    "UNIT" Left it.unit,
    "FLOWS" Right it.flows,
    "TOTAL" Right it.total,
    "MEDIAN" Right short(it.median),
    "P95" Right short(it.p95),
    "WORST" Right short(it.worst),
});

fn short(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.2}") }
}

/// What is measured, in the order of the table.
const KPIS: [(&str, &str, Better); 12] = [
    ("TCP handshake", "ms", Better::Low),
    ("TCP round trip to the client", "ms", Better::Low),
    ("TCP round trip to the server", "ms", Better::Low),
    ("TCP retransmissions", "segments", Better::None),
    ("TCP out of order", "segments", Better::None),
    ("TCP zero windows", "segments", Better::None),
    ("RTP loss", "%", Better::Low),
    ("RTP jitter", "ms", Better::Low),
    ("RTP MOS", "1 to 4.5", Better::High),
    ("video bit rate", "Mbit/s", Better::High),
    ("best second up", "Mbit/s", Better::High),
    ("best second down", "Mbit/s", Better::High),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Low,
    High,
    /// It is counted: none is best.
    None,
}

/// The measures of all flows.
#[derive(Clone, Debug)]
pub struct Qualities {
    values: [Vec<f32>; KPIS.len()],
    totals: [u64; KPIS.len()],
}

impl Default for Qualities {
    fn default() -> Self {
        Self { values: [const { Vec::new() }; KPIS.len()], totals: [0; KPIS.len()] }
    }
}

impl Qualities {
    /// One more flow.
    pub fn add(&mut self, quality: &Quality) {
        let mut values: Vec<(usize, Option<f64>)> = vec![
            (10, (quality.best_bits_up > 0).then_some(quality.best_bits_up as f64 / 1e6)),
            (11, (quality.best_bits_down > 0).then_some(quality.best_bits_down as f64 / 1e6)),
            (9, quality.video.as_ref().map(|it| it.bits_per_second as f64 / 1e6)),
        ];
        if let Some(tcp) = &quality.tcp {
            values.extend([(0, tcp.handshake_ms), (1, tcp.client_ms), (2, tcp.server_ms)]);
            let counts = [
                (3, tcp.retransmissions_up + tcp.retransmissions_down),
                (4, tcp.out_of_order_up + tcp.out_of_order_down),
                (5, tcp.zero_windows_up + tcp.zero_windows_down),
            ];
            values.extend(counts.map(|(at, count)| (at, Some(count.into()))));
        }
        for media in &quality.media {
            values.extend([(6, Some(media.lost_percent)), (7, media.jitter_ms), (8, media.mos)]);
        }
        for (at, value) in values {
            if let (Some(value), Some(all), Some(total)) =
                (value, self.values.get_mut(at), self.totals.get_mut(at))
            {
                *total += value as u64;
                if all.len() < VALUES {
                    all.push(value as f32);
                }
            }
        }
    }

    /// What they come to; measures that no flow has are left out.
    pub fn lines(&self) -> Vec<KpiLine> {
        let lines =
            KPIS.iter().zip(self.values.iter().zip(&self.totals)).filter_map(|(kpi, (values, total))| {
                let (kpi, unit, better) = *kpi;
                let mut values = values.clone();
                values.sort_by(f32::total_cmp);
                if better == Better::High {
                    values.reverse();
                }
                let at = |share: f64| {
                    let place = ((values.len() as f64 * share).ceil() as usize).saturating_sub(1);
                    values.get(place).map(|it| rounded(f64::from(*it)))
                };
                let is_counted = better == Better::None;
                let flows = values.iter().filter(|it| !is_counted || **it > 0.0).count() as u64;
                Some(KpiLine {
                    kpi,
                    unit,
                    flows,
                    total: is_counted.then_some(*total),
                    median: at(0.5)?,
                    p95: at(0.95)?,
                    worst: at(1.0)?,
                })
            });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_worst_is_the_least_where_more_is_better() {
        let mut all = Qualities::default();
        for number in 1..=100_u64 {
            let tcp = TcpQuality {
                handshake_ms: Some(number as f64),
                client_ms: None,
                server_ms: None,
                retransmissions_up: u32::from(number > 90),
                retransmissions_down: 0,
                out_of_order_up: 0,
                out_of_order_down: 0,
                zero_windows_up: 0,
                zero_windows_down: 0,
                duplicate_acks_up: 0,
                duplicate_acks_down: 0,
                resets: 0,
            };
            let (up, down) = (number * 1_000_000, 0);
            all.add(&Quality {
                best_bits_up: up,
                best_bits_down: down,
                tcp: Some(tcp),
                media: vec![],
                video: None,
            });
        }
        let lines = all.lines();
        let of = |name: &str| lines.iter().find(|it| it.kpi == name).unwrap();
        let told = |name: &str| (of(name).flows, of(name).median, of(name).p95, of(name).worst);
        assert_eq!(told("TCP handshake"), (100, 50.0, 95.0, 100.0));
        assert_eq!(told("best second up"), (100, 51.0, 6.0, 1.0));
        assert_eq!((of("TCP retransmissions").total, of("TCP retransmissions").flows), (Some(10), 10));
        assert!(!lines.iter().any(|it| it.kpi == "RTP loss" || it.kpi == "best second down"));
    }
}
