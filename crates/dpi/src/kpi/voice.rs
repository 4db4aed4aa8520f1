//! What a call sounds like: ITU-T G.107's E-model, simplified.
//!
//! R = 93.2 - Id - Ie,eff. 93.2 is what all that can't be seen in packets has by default (noise, echo, loudness: G.107 table 2). Of the delay's impairment
//! Id only that of the delay itself counts (Idd), by the approximation of Cole and Rosenbluth (2001): no echo. Losses are taken to be random (BurstR = 1),
//! and those that a receiver's jitter buffer adds are not seen. There is no advantage factor, and the wideband model (G.107.1) isn't there: of codecs
//! that need it nothing is said.

/// How a codec bears loss (G.113 appendix I of 11/2007, tables I.1 and I.4: provisional planning values).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Impairment {
    /// Ie: what it lacks without loss.
    pub equipment: f32,
    /// Bpl: how robust it is.
    pub robustness: f32,
}

/// By the codec's name in SDP; `None`: unknown here, or not for the narrow band.
pub fn impairment(codec: &str) -> Option<Impairment> {
    let known = |equipment, robustness| Some(Impairment { equipment, robustness });
    match codec {
        // With concealment of losses, as all receivers have it today; without, Bpl is 4.3.
        "PCMU" | "PCMA" => known(0.0, 25.1),
        // G.729A with VAD. G.729 itself has an Ie of 10, and no Bpl in the table.
        "G729" => known(11.0, 19.0),
        // With VAD, at 6.3 kbit/s; at 5.3 its Ie is 19.
        "G723" => known(15.0, 16.1),
        // AMR at 12.2 kbit/s is GSM-EFR (TS 26.071 §4); of its lower rates this says too much.
        "GSM-EFR" | "AMR" => known(5.0, 10.0),
        _ => None,
    }
}

/// The rating R, 0 to 100, for a share of losses in percent and a delay from mouth to ear in milliseconds.
pub fn rating(codec: Impairment, lost_percent: f32, delay_millis: f32) -> f32 {
    let Impairment { equipment, robustness } = codec;
    let lost = lost_percent.clamp(0.0, 100.0);
    let delay = delay_millis.max(0.0);
    let delayed = 0.024 * delay + 0.11 * (delay - 177.3).max(0.0);
    // G.107 §7.5, equation 7-29 with BurstR = 1.
    let effective = equipment + (95.0 - equipment) * lost / (lost + robustness);
    (93.2 - delayed - effective).clamp(0.0, 100.0)
}

/// The mean opinion score, 1 to 4.5, that belongs to a rating (G.107 annex B, equation B-4).
pub fn opinion(rating: f32) -> f32 {
    if rating <= 0.0 {
        return 1.0;
    }
    if rating >= 100.0 {
        return 4.5;
    }
    (1.0 + 0.035 * rating + rating * (rating - 60.0) * (100.0 - rating) * 7e-6).max(1.0)
}

/// The delay from mouth to ear that a jitter means: the network's, and a buffer that holds twice the jitter, and two packets of 20 ms to make and to play them.
pub fn delay(network_millis: f32, jitter_millis: f32) -> f32 {
    network_millis + 2.0 * jitter_millis + 40.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn close(a: f32, b: f32) -> bool {
        (a - b).abs() < 0.02
    }

    #[test]
    fn the_standards_own_points_are_met() {
        // G.107: all defaults give R = 93.2 and 4.41.
        let pcm = impairment("PCMU").unwrap();
        assert!(close(rating(pcm, 0.0, 0.0), 93.2));
        assert!(close(opinion(93.2), 4.41));
        // G.107 annex B, table B.1: the limits of the classes of users' satisfaction.
        for (rating, score) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            assert!(close(opinion(rating), score), "{rating}: {}", opinion(rating));
        }
        assert!(close(opinion(0.0), 1.0) && close(opinion(100.0), 4.5));
    }

    #[test]
    fn loss_and_delay_only_make_it_worse() {
        let codec = impairment("G729").unwrap();
        let mut before = 100.0;
        for percent in 0..=100 {
            let now = rating(codec, percent as f32, 100.0);
            assert!(now <= before);
            before = now;
        }
        assert!(rating(codec, 1.0, 400.0) < rating(codec, 1.0, 150.0));
        assert!((1.0..=4.5).contains(&opinion(rating(codec, 100.0, 10_000.0))));
        assert_eq!(impairment("opus"), None);
        assert!(close(delay(30.0, 10.0), 90.0));
    }
}
