//! What the Jetson draws, fitted to Tables 5.5, 5.7 and 6.2.
//!
//! - GPU: 564 mW idle, and 2,431 mW more while a kernel runs (Tables 5.5 and 5.7, C1 ML: 1,072 mW at 21 %, 1,782 mW at 50 % of the time).
//! - CPU: 4,370 mW; 1,050 mW for each worker that polls, busy or not (Table 6.2); 62 mW for a thousand packets a second; 700 mW while any core decodes.
//! - SOC: 2,455 mW; 50 mW for a thousand packets a second; 151 mW while any core decodes.
//! - DDR RAM: 97 mW; 18 mW for a thousand packets a second; 120 mW while any core decodes.

/// What was done in some time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Activity {
    /// Seconds.
    pub seconds: f64,
    /// Packets that came in.
    pub packets: f64,
    /// Seconds in which a kernel ran.
    pub kernel: f64,
    /// Seconds in which at least one core decoded.
    pub decoding: f64,
    /// Seconds in which workers polled or worked, summed over cores.
    pub polling: f64,
}

/// Milliwatts, on average.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Power {
    /// Of the GPU.
    pub gpu: f64,
    /// Of all cores.
    pub cpu: f64,
    /// Of what is around them.
    pub soc: f64,
    /// Of the memory.
    pub ddr: f64,
}

impl Power {
    /// What is drawn for that.
    pub fn of(activity: &Activity) -> Self {
        let Activity { seconds, packets, kernel, decoding, polling } = *activity;
        if seconds <= 0.0 {
            return Self::default();
        }
        let thousands = packets / seconds / 1000.0;
        let (kernel, decoding, polling) = (kernel / seconds, decoding / seconds, polling / seconds);
        Self {
            gpu: 564.0 + 2431.0 * kernel,
            cpu: 4370.0 + 1050.0 * polling + 62.0 * thousands + 700.0 * decoding,
            soc: 2455.0 + 50.0 * thousands + 151.0 * decoding,
            ddr: 97.0 + 18.0 * thousands + 120.0 * decoding,
        }
    }

    /// All of it.
    pub fn total(&self) -> f64 {
        self.gpu + self.cpu + self.soc + self.ddr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C1 ML (all on the GPU) with one to four workers in the low test: Table 6.2.
    #[test]
    fn table_6_2() {
        for (workers, cpu) in [(1.0, 5608.0), (2.0, 6648.0), (3.0, 7814.0), (4.0, 8743.0)] {
            let low =
                Activity { seconds: 1.0, packets: 3046.0, kernel: 0.209, decoding: 0.0, polling: workers };
            let power = Power::of(&low);
            assert!((power.cpu / cpu - 1.0).abs() < 0.02, "{workers}: {power:?}");
            assert!((power.gpu / 1072.0 - 1.0).abs() < 0.01, "{power:?}");
            assert!(
                (power.soc / 2606.0 - 1.0).abs() < 0.01 && (power.ddr / 153.0 - 1.0).abs() < 0.02,
                "{power:?}"
            );
        }
    }
}
