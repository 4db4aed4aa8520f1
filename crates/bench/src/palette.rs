//! What tells series apart: colours that differ for every kind of sight and, the first ones, in grey; and for all others a
//! hatch on bars and a shape at points.

/// Texts and axes.
pub const INK: &str = "#222222";
/// Lines of the grid.
pub const GRID: &str = "#dddddd";
/// What frames something.
pub const FRAME: &str = "#888888";

/// Colours of series, in order.
const COLOURS: [&str; 7] = ["#123f7c", "#c95200", "#3d9bd5", "#000000", "#b04a9c", "#1b7f5c", "#8a8a8a"];

/// What is drawn in white over a bar, in a square of six pixels: the first is nothing.
pub const HATCHES: [&str; 4] =
    ["", "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", "M0,3 h6", "M-1,5 l2,2 M0,0 l6,6 M5,-1 l2,2"];

/// What stands at a point of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ▼
    Wedge,
}

/// What one series looks like in every panel of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// As `#rrggbb`.
    pub colour: &'static str,
    /// One of [`HATCHES`].
    pub hatch: usize,
    /// At points.
    pub marker: Marker,
}

/// Of the series with this number in a figure.
pub fn look(number: usize) -> Look {
    let colour = COLOURS.get(number % COLOURS.len()).copied().unwrap_or(INK);
    // Who has to share a colour has another hatch.
    let hatch = (number + 2 * (number / COLOURS.len())) % HATCHES.len();
    let marker = match (number + 2 * (number / COLOURS.len())) % 4 {
        0 => Marker::Circle,
        1 => Marker::Square,
        2 => Marker::Triangle,
        _ => Marker::Wedge,
    };
    Look { colour, hatch, marker }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Matrix = [[f64; 3]; 3];

    /// Sight of all cones, and without one of the three kinds (Machado, Oliveira and Fernandes 2009, table 1, severity 1).
    const SIGHTS: [(&str, Matrix); 4] = [
        ("all", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "without red",
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        ),
        (
            "without green",
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
        ),
        (
            "without blue",
            [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        ),
    ];

    /// Light of each kind, from 0 to 1 (sRGB).
    fn light(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let part = u8::from_str_radix(colour.get(at..at + 2).unwrap_or("00"), 16).unwrap_or(0);
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// Lightness and two coordinates of colour in which distances are alike to the eye (CIE 1976 L*a*b*).
    fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let bent = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let x = bent((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
        let y = bent(0.2126 * r + 0.7152 * g + 0.0722 * b);
        let z = bent((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn seen(colour: &str, sight: &Matrix) -> [f64; 3] {
        let light = light(colour);
        lab(sight.map(|row| row.iter().zip(light).map(|(a, b)| a * b).sum::<f64>().clamp(0.0, 1.0)))
    }

    fn pairs(list: &[&'static str]) -> Vec<(&'static str, &'static str)> {
        let after = |at: usize| list.iter().skip(at + 1);
        list.iter().enumerate().flat_map(|(at, a)| after(at).map(|b| (*a, *b))).collect()
    }

    /// A difference of 2.3 can just be noticed; of five times that much, without looking for it.
    #[test]
    fn whoever_sees_it_can_tell_colours_apart() {
        for (name, sight) in &SIGHTS {
            for (a, b) in pairs(&COLOURS) {
                let (one, other) = (seen(a, sight), seen(b, sight));
                let distance = one.iter().zip(other).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
                assert!(distance > 5.0 * 2.3, "{a} and {b} {name}: {distance}");
            }
        }
    }

    #[test]
    fn the_first_ones_differ_in_grey_and_all_stand_out_from_paper() {
        let lightness = |colour: &str| lab(light(colour))[0];
        for (a, b) in pairs(COLOURS.get(..3).unwrap_or_default()) {
            assert!((lightness(a) - lightness(b)).abs() > 3.0 * 2.3, "{a} {b}");
        }
        for colour in COLOURS {
            // WCAG 2.2, 1.4.11: 3 to 1 for what is not text.
            let [r, g, b] = light(colour);
            let contrast = 1.05 / (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05);
            assert!(contrast >= 3.0, "{colour}: {contrast}");
        }
    }

    #[test]
    fn more_series_than_colours_differ_by_hatch() {
        let looks: Vec<Look> = (0..14).map(look).collect();
        for (at, one) in looks.iter().enumerate() {
            for other in looks.iter().skip(at + 1) {
                assert!(
                    one.colour != other.colour || (one.hatch != other.hatch && one.marker != other.marker)
                );
            }
        }
    }
}
