//! Formats text tables whose columns are as wide as their widest cell.

/// Spaces between two columns, as in kubectl's tables.
const GAP: usize = 3;

/// Formats a header and rows. Each line ends with a line break and has no trailing spaces.
pub fn render<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut lines = vec![header.map(str::to_owned)];
    lines.extend(rows);
    let width = |column: usize| lines.iter().map(|line| count(&line[column])).max();
    let widths: Vec<_> = (0..N)
        .map(|column| width(column).unwrap_or_default())
        .collect();
    let lines = lines.iter().map(|line| row(line, &widths));
    lines.collect()
}

fn row(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| {
        let space = width + GAP - count(cell);
        format!("{cell}{:space$}", "")
    });
    let line: String = padded.collect();
    format!("{}\n", line.trim_end())
}

fn count(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_its_widest_cell() {
        let rows = [["a", "–"], ["long one", "2"]].map(|row| row.map(str::to_owned));
        assert_eq!(
            render(["X", "SECOND"], rows),
            "X          SECOND\na          –\nlong one   2\n"
        );
    }
}
