//! SVG to PNG. The letters come from a bundled font: a figure must look the same on a laptop and
//! on a server that has no fonts at all.

use resvg::{tiny_skia, usvg};

/// Larger images are a mistake, and the memory grows with the square.
const WIDEST: u32 = 8192;

/// Rasterises a figure to a PNG of the given width; the height follows, and the width where that exceeds 8192 pixels.
///
/// # Errors
/// If the text is no SVG, or the width is zero or beyond 8192 pixels.
pub fn png(svg: &str, width_px: u32) -> Result<Vec<u8>, String> {
    if width_px == 0 || width_px > WIDEST {
        return Err(format!("width must be 1 to {WIDEST} pixels, not {width_px}"));
    }
    let mut options = usvg::Options { font_family: "Noto Sans".to_owned(), ..usvg::Options::default() };
    let fonts = options.fontdb_mut();
    fonts.load_font_data(notosans::REGULAR_TTF.to_vec());
    fonts.load_font_data(notosans::BOLD_TTF.to_vec());
    fonts.set_sans_serif_family("Noto Sans");
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| format!("not a usable SVG: {error}"))?;
    let size = tree.size();
    // A picture that would be too tall gets narrower instead.
    let scale = (width_px as f32 / size.width()).min(WIDEST as f32 / size.height());
    let height = (size.height() * scale).ceil().min(WIDEST as f32);
    let width_px = ((size.width() * scale).round() as u32).clamp(1, width_px);
    if !height.is_finite() || height < 1.0 {
        return Err("the picture has no height".to_string());
    }
    let mut pixels = tiny_skia::Pixmap::new(width_px, height as u32)
        .ok_or_else(|| format!("no memory for {width_px} by {height} pixels"))?;
    let transform = tiny_skia::Transform::from_scale(scale, scale);
    resvg::render(&tree, transform, &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| format!("the image could not be encoded: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_leave_ink() {
        let page = |text: &str| {
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\">\
                 <text x=\"2\" y=\"15\" font-family=\"Noto Sans\" font-size=\"14\">{text}</text></svg>"
            );
            png(&svg, 120)
        };
        let (empty, full) = (page(""), page("±−ε"));
        assert!(full.as_ref().is_ok_and(|bytes| bytes.starts_with(b"\x89PNG")));
        assert_ne!(empty, full);
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        let tall =
            png("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"2000\"/>", 1200).unwrap();
        // Width and height stand in the first block, as big-endian numbers.
        assert_eq!((&tall[16..20], &tall[20..24]), (&410u32.to_be_bytes()[..], &8192u32.to_be_bytes()[..]));
        assert!(png("no svg", 100).is_err());
        assert!(png("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>", 0).is_err());
    }
}
