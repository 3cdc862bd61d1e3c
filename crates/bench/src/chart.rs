//! Line charts as SVG, both axes logarithmic, readable on light and on dark pages.

use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 240.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 56.0;

/// Eight hues that differ in lightness as well, on white and on black.
const COLOURS: [&str; 10] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56a0d3", "#7a5cc7", "#8c564b", "#607d8b", "#c2185b"];

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1f2328}.page{fill:#ffffff}.grid{stroke:#d0d7de}\
.axis{stroke:#57606a}.title{font-size:15px;font-weight:600}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.grid{stroke:#30363d}.axis{stroke:#8b949e}}";

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What the horizontal axis counts.
    pub across: String,
    /// What the vertical axis counts.
    pub up: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it stands for.
    pub name: String,
    /// Points with positive coordinates, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether it is drawn with gaps, as what we are compared with is.
    pub dashed: bool,
}

/// From a power of ten to a power of ten.
struct Scale {
    from: i32,
    to: i32,
    start: f64,
    end: f64,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64> + Clone, start: f64, end: f64) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        let (from, to) = match least.is_finite() && least > 0.0 {
            true => (least.log10().floor() as i32, most.log10().ceil() as i32),
            false => (0, 1),
        };
        Self { from, to: to.max(from + 1), start, end }
    }

    fn place(&self, value: f64) -> f64 {
        let part = (value.log10() - f64::from(self.from)) / f64::from(self.to - self.from);
        self.start + part * (self.end - self.start)
    }

    fn powers(&self) -> impl Iterator<Item = f64> {
        (self.from..=self.to).map(|power| 10f64.powi(power))
    }
}

impl Chart {
    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
        let mut out = String::new();
        // Writing to a String never fails.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let points = self.lines.iter().flat_map(|line| line.points.iter().copied());
        let across = Scale::over(points.clone().map(|(across, _)| across), LEFT, WIDTH - RIGHT);
        let up = Scale::over(points.map(|(_, up)| up), HEIGHT - BOTTOM, TOP);
        writeln!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}"><title>{title}</title><style>{STYLE}</style><rect class="page" width="{WIDTH}" height="{HEIGHT}"/>"#,
            title = escaped(&self.title),
        )?;
        writeln!(out, r#"<text class="title" x="{LEFT}" y="26">{}</text>"#, escaped(&self.title))?;
        self.write_axes(out, &across, &up)?;
        for (position, (line, colour)) in self.lines.iter().zip(COLOURS.iter().cycle()).enumerate() {
            line.write(out, colour, position, &across, &up)?;
        }
        out.push_str("</svg>\n");
        Ok(())
    }

    fn write_axes(&self, out: &mut String, across: &Scale, up: &Scale) -> std::fmt::Result {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for value in across.powers() {
            let x = across.place(value);
            writeln!(out, r#"<line class="grid" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{bottom}"/>"#)?;
            writeln!(out, r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#, bottom + 18.0, tick(value))?;
        }
        for value in up.powers() {
            let y = up.place(value);
            writeln!(out, r#"<line class="grid" x1="{LEFT}" y1="{y:.1}" x2="{right}" y2="{y:.1}"/>"#)?;
            writeln!(
                out,
                r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                LEFT - 8.0,
                y + 4.0,
                tick(value)
            )?;
        }
        writeln!(out, r#"<path class="axis" fill="none" d="M{LEFT} {TOP}V{bottom}H{right}"/>"#)?;
        let middle = (LEFT + right) / 2.0;
        writeln!(
            out,
            r#"<text x="{middle}" y="{}" text-anchor="middle">{}</text>"#,
            HEIGHT - 14.0,
            escaped(&self.across)
        )?;
        let middle = (TOP + bottom) / 2.0;
        writeln!(
            out,
            r#"<text transform="translate(20 {middle}) rotate(-90)" text-anchor="middle">{}</text>"#,
            escaped(&self.up)
        )
    }
}

impl Line {
    fn write(&self, out: &mut String, colour: &str, position: usize, across: &Scale, up: &Scale) -> std::fmt::Result {
        let dashes = if self.dashed { r#" stroke-dasharray="7 5""# } else { "" };
        let places: Vec<(f64, f64)> = self.points.iter().map(|(x, y)| (across.place(*x), up.place(*y))).collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        writeln!(
            out,
            r#"<polyline fill="none" stroke="{colour}" stroke-width="2"{dashes} points="{}"/>"#,
            path.join(" ")
        )?;
        for (x, y) in &places {
            writeln!(out, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"/>"#)?;
        }
        let (x, y) = (WIDTH - RIGHT + 20.0, TOP + 10.0 + 24.0 * position as f64);
        writeln!(
            out,
            r#"<line x1="{x}" y1="{y}" x2="{}" y2="{y}" stroke="{colour}" stroke-width="2"{dashes}/><text x="{}" y="{}">{}</text>"#,
            x + 26.0,
            x + 34.0,
            y + 4.0,
            escaped(&self.name),
        )
    }
}

/// A power of ten as people read it.
fn tick(value: f64) -> String {
    match value {
        1e9.. => format!("{} G", value / 1e9),
        1e6.. => format!("{} M", value / 1e6),
        1e3.. => format!("{} k", value / 1e3),
        _ => format!("{value}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let line = |name: &str, dashed| Line {
            name: name.to_owned(),
            points: vec![(1e4, 0.3), (1e5, 0.5), (1e6, 2.0)],
            dashed,
        };
        Chart {
            title: "p50 < 1 ms & \"more\"".to_owned(),
            across: "manifests".to_owned(),
            up: "ms".to_owned(),
            lines: vec![line("Rialto <a>", false), line("PostgreSQL", true)],
        }
    }

    /// Every tag that opens closes again in order, attributes are quoted, and no bare `&` or `<` is left.
    #[track_caller]
    fn check_well_formed(text: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = text.trim();
        while let Some(at) = rest.find('<') {
            check_characters(&rest[..at]);
            let end = rest.find('>').expect("a tag ends");
            let tag = &rest[at + 1..end];
            assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "<{tag}>");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap());
            }
            check_characters(tag);
            rest = &rest[end + 1..];
        }
        assert_eq!((open.as_slice(), rest), (&[][..], ""));
    }

    #[track_caller]
    fn check_characters(text: &str) {
        for (at, _) in text.match_indices('&') {
            let named = ["&amp;", "&lt;", "&gt;", "&quot;"].iter().any(|entity| text[at..].starts_with(entity));
            assert!(named, "a bare & in `{text}`");
        }
    }

    #[test]
    fn a_chart_is_well_formed_and_names_its_lines() {
        let svg = chart().svg();
        check_well_formed(&svg);
        assert!(svg.starts_with("<svg ") && svg.contains("Rialto &lt;a&gt;") && svg.contains("stroke-dasharray"));
        assert_eq!(svg.matches("<polyline").count(), 2);
        check_well_formed(&Chart { lines: Vec::new(), ..chart() }.svg());
    }

    #[test]
    fn a_tenfold_value_is_one_step_further() {
        let scale = Scale::over([20.0, 3_000.0].into_iter(), 0.0, 300.0);
        assert_eq!((scale.from, scale.to), (1, 4));
        assert!((scale.place(1_000.0) - 200.0).abs() < 1e-9);
    }
}
