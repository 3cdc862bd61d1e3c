//! `rialto spending`: what was settled, for whom and when, each payment with the intent that authorised it
//! (RFC 0020 B.2).

use crate::failure::{Exit, Failure};
use crate::ledger::Place;
use crate::output::text::{json_line, shown};
use crate::output::{self, BAD, DIM, STRONG, count, paint};
use aql::Instant;
use json::{Value, json};
use payment::{Period, Spending};

/// Report what was spent
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto spending --from 2026-11-01 --to 2026-12-01")]
pub(crate) struct Report {
    /// Of this principal only
    #[arg(long, value_name = "DID")]
    principal: Option<String>,

    /// From this date or moment on (UTC where none is said)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<Instant>,

    /// Before this date or moment
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Instant>,

    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Report {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (ledger, flaws) = self.place.look()?;
        let period = Period { from: self.from, to: self.to };
        let all = payment::spending(&ledger, self.principal.as_deref(), period);
        let totals = Spending::totals(&all);
        if self.json {
            let payments: Vec<Value> = all.iter().map(Spending::to_value).collect();
            let totals: Value =
                totals.iter().map(|(currency, total)| (currency.clone(), json!(total.to_string()))).collect();
            let told = json!({"payments": payments, "totals": totals, "sound": flaws.is_empty()});
            output::print(&json_line(told.to_string().as_bytes()))?;
        } else {
            output::print(&all.iter().map(line).collect::<String>())?;
            let sums: Vec<String> = totals.iter().map(|(currency, total)| format!("{total} {currency}")).collect();
            let sums = if sums.is_empty() { "nothing".to_owned() } else { sums.join(", ") };
            output::print(&format!("{} {sums}\n", paint(STRONG, format!("{}:", count(all.len(), "payment")))))?;
        }
        for flaw in &flaws {
            output::say(&format!("{} the ledger: {}", paint(BAD, "✗"), flaw.describe()));
        }
        Ok(if flaws.is_empty() { Exit::Fine } else { Exit::No })
    }
}

fn line(spending: &Spending) -> String {
    let amount = format!("{} {}", spending.amount, spending.currency);
    let under = paint(DIM, format!("for {}", shown(&spending.intent_id)));
    format!("{}  {amount:>14}  {}\n    {under}\n", spending.at, shown(&spending.counterparty))
}

fn moment(text: &str) -> Result<Instant, String> {
    Instant::parse(text).ok_or_else(|| "a date such as 2026-11-01, or an RFC 3339 moment".to_owned())
}
