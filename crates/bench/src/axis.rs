//! Axes: from where to where, where something is written, and what.

/// Ticks of an axis, about.
const TICKS: f64 = 5.0;

/// One axis of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its ends.
    from: f64,
    to: f64,
    logarithmic: bool,
    /// What is written where.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From the least to the greatest, with a tick at round values.
    pub fn between(from: f64, to: f64, whole: bool) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        let step = step((to - from) / TICKS, whole);
        let first = (from / step - 1e-9).ceil() as i64;
        let last = (to / step + 1e-9).floor() as i64;
        let ticks = (first..=last).map(|n| (n as f64 * step, number(n as f64 * step, step))).collect();
        Self { from, to, logarithmic: false, ticks }
    }

    /// Without ticks.
    pub const fn unwritten(from: f64, to: f64) -> Self {
        Self { from, to, logarithmic: false, ticks: Vec::new() }
    }

    /// From zero to a round value above the greatest.
    pub fn from_zero(most: f64) -> Self {
        let most = if most > 0.0 { most * 1.04 } else { 1.0 };
        let step = step(most / TICKS, false);
        Self::between(0.0, (most / step).ceil() * step, false)
    }

    /// Powers of ten around all values.
    pub fn powers(least: f64, most: f64) -> Self {
        let first = least.log10().floor() as i32;
        let last = (most.log10().ceil() as i32).max(first + 1);
        if last - first == 1 {
            // Two ticks alone would say little of what lies between them.
            let (ten, step) = (10_f64.powi(first), 10_f64.powi(first.min(0)));
            let ticks = [1.0, 2.0, 5.0, 10.0].map(|times| (times * ten, number(times * ten, step))).into();
            return Self { from: ten, to: 10.0 * ten, logarithmic: true, ticks };
        }
        let every = ((last - first) as f64 / (TICKS + 2.0)).ceil().max(1.0) as usize;
        let tick = |power: i32| (10_f64.powi(power), number(10_f64.powi(power), 10_f64.powi(power.min(0))));
        let ticks = (first..=last).step_by(every).map(tick).collect();
        Self { from: 10_f64.powi(first), to: 10_f64.powi(last), logarithmic: true, ticks }
    }

    /// Where a value stands: 0 is the axis' beginning, 1 its end. `None`: nowhere, as zero on powers of ten.
    pub fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.logarithmic && value <= 0.0) {
            return None;
        }
        let bent = |value: f64| if self.logarithmic { value.log10() } else { value };
        Some((bent(value) - bent(self.from)) / (bent(self.to) - bent(self.from)))
    }
}

/// A round value that is no less: 1, 2 or 5 times a power of ten.
fn step(least: f64, whole: bool) -> f64 {
    let least = if whole { least.max(1.0) } else { least };
    let power = 10_f64.powf((least.log10() + 1e-9).floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= least * 0.999)
        .unwrap_or(power)
}

/// As many digits as a step needs, in groups of three.
pub fn number(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).max(0.0) as usize;
    let text = format!("{:.digits$}", value.abs());
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let sign = if value < 0.0 { "-" } else { "" };
    let dot = if rest.is_empty() { "" } else { "." };
    format!("{sign}{}{dot}{rest}", grouped(whole))
}

/// Digits in groups of three.
pub fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_tell_apart() {
        assert_eq!(written(&Axis::from_zero(5.2)), ["0", "2", "4", "6"]);
        assert_eq!(written(&Axis::from_zero(0.007)), ["0.000", "0.002", "0.004", "0.006", "0.008"]);
        assert_eq!(
            written(&Axis::from_zero(1_800_000.0)),
            ["0", "500,000", "1,000,000", "1,500,000", "2,000,000"]
        );
        assert_eq!(written(&Axis::between(1.0, 6.0, true)), ["1", "2", "3", "4", "5", "6"]);
        // Never between two workers.
        assert_eq!(written(&Axis::between(1.0, 2.0, true)), ["1", "2"]);
        assert_eq!(written(&Axis::between(0.8, 2.5, false)), ["1.0", "1.5", "2.0", "2.5"]);
        assert_eq!(
            written(&Axis::powers(0.4, 180_000.0)),
            ["0.1", "1", "10", "100", "1,000", "10,000", "100,000", "1,000,000"]
        );
        assert_eq!(written(&Axis::powers(20.0, 80.0)), ["10", "20", "50", "100"]);
        assert_eq!(written(&Axis::powers(0.3, 0.8)), ["0.1", "0.2", "0.5", "1.0"]);
        assert_eq!(written(&Axis::from_zero(0.0)).first(), Some(&"0.0"));
    }

    #[test]
    fn values_stand_between_the_ends() {
        let axis = Axis::from_zero(8.0);
        for (value, _) in &axis.ticks {
            assert!((0.0..=1.0 + 1e-9).contains(&axis.place(*value).unwrap_or(-1.0)));
        }
        let powers = Axis::powers(3.0, 300.0);
        assert!((powers.place(100.0).unwrap_or_default() - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(
            (powers.place(0.0), powers.place(f64::NAN), axis.place(f64::INFINITY)),
            (None, None, None)
        );
    }
}
