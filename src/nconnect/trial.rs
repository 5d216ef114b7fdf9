//! Did it help? After the number of connections was changed as advised, three busy hours are compared with what was before.

/// One change that is being judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    pub advice: String,
    pub client: String,
    pub server: String,
    pub kind: String,
    pub before: u64,
    pub after: u64,
    /// The 95th percentile of busy windows before, bytes per second.
    pub before_bytes_per_s: f64,
    pub busy_ms: u64,
    /// Of busy windows since; bounded.
    pub rates: Vec<f64>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// 1.9: nearly twice as fast.
    pub gain: f64,
    pub helped: bool,
}

const BUSY_MS: u64 = 3 * 3_600_000;
const RATES: usize = 4096;
/// Less is none.
const GAIN_MIN: f64 = 1.1;
/// Fewer connections are to cost no more than this.
const LOSS_MAX: f64 = 0.9;

impl Trial {
    /// A busy window of the client with its new number of connections.
    pub fn add(&mut self, length_ms: u64, bytes_per_s: f64) {
        self.busy_ms = self.busy_ms.saturating_add(length_ms);
        if self.rates.len() < RATES {
            self.rates.push(bytes_per_s);
        }
    }

    /// None: not three busy hours yet.
    pub fn outcome(&self) -> Option<Outcome> {
        if self.busy_ms < BUSY_MS || self.before_bytes_per_s <= 0.0 {
            return None;
        }
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        let last = rates.len().checked_sub(1)?;
        let now = rates.get((last * 95 + 50) / 100)?;
        let gain = now / self.before_bytes_per_s;
        Some(Outcome {
            gain,
            helped: gain >= if self.after < self.before { LOSS_MAX } else { GAIN_MIN },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(rate: f64, windows: u64) -> Trial {
        let mut trial = Trial {
            advice: "nc-1".to_owned(),
            client: "c".to_owned(),
            server: "s".to_owned(),
            kind: "transport".to_owned(),
            before: 1,
            after: 4,
            before_bytes_per_s: 100.0,
            busy_ms: 0,
            rates: Vec::new(),
        };
        (0..windows).for_each(|_| trial.add(15_000, rate));
        trial
    }

    #[test]
    fn three_busy_hours_decide() {
        assert_eq!(trial(200.0, 719).outcome(), None);
        assert_eq!(
            trial(200.0, 720).outcome(),
            Some(Outcome {
                gain: 2.0,
                helped: true
            })
        );
        assert!(!trial(109.0, 720).outcome().unwrap().helped);
        assert!(trial(110.1, 720).outcome().unwrap().helped);
        // Fewer connections help where nothing is lost by it.
        for (rate, helped) in [(89.9, false), (90.1, true)] {
            let fewer = Trial {
                after: 1,
                before: 4,
                ..trial(rate, 720)
            };
            assert_eq!(fewer.outcome().unwrap().helped, helped);
        }
    }
}
