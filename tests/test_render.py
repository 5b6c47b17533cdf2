"""Strips of text: drawn the same everywhere, read back exactly; pictures of every kind, whole or broken."""

import struct
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from io import BytesIO

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageDraw, ImageFont

import render
from render import Renderer, picture_strip, png

HEIGHT, SIZE = 32, 24
WHERE = "rows.jsonl, row 5"
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
STRIPS = arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 20)))
# Random letters, and texts where several reach into their neighbours' places.
TEXTS = st.text(st.sampled_from("abcdeéfffgjjlmnorstuxyAJTVWдяλ0123 .,'\""), min_size=1, max_size=30)
# All of Unicode, half surrogates too; st.text reads a table for seconds.
ANY_TEXTS = st.lists(st.integers(0, 0x10FFFF).map(chr), max_size=20).map("".join)


@cache
def renderer() -> Renderer:
    return Renderer(render.packaged_font(), HEIGHT)


@cache
def basic_font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(BytesIO(render.packaged_font()), size, layout_engine=ImageFont.Layout.BASIC)


def strip(text: str, size: int = SIZE) -> render.Strip:
    return renderer().strip(text, size)


def saved(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def drawn(text: str = "Hello", **colours: str) -> Image.Image:
    """A picture as a user would make it, dark on white unless told otherwise."""
    ground, ink = colours.get("ground", "white"), colours.get("ink", "black")
    image = Image.new(colours.get("mode", "RGB"), (90, HEIGHT), ground)
    font = basic_font(SIZE)
    ImageDraw.Draw(image).text((5, 2), text, fill=ink, font=font)
    return image


def read(data: bytes, height: int = HEIGHT) -> render.Strip:
    return picture_strip(data, height, WHERE)


def same(a: render.Strip, b: render.Strip) -> bool:
    return a.shape == b.shape and bool((a == b).all())


# drawing


def test_a_strip_is_bytes_of_the_given_height_with_ink_high():
    pixels = strip("Hello")
    assert (pixels.dtype, len(pixels), pixels.min(), pixels.max()) == (np.uint8, HEIGHT, 0, 255)
    assert (pixels == 0).mean() > 0.5


@given(TEXTS, st.sampled_from((10, 16, 24, 40)))
@settings(max_examples=60, deadline=None)
def test_a_strip_has_the_pixels_of_pillow_drawing_the_whole_line(text, size):
    font = basic_font(size)
    # Pillow's basic layout kerns by 64ths of a pixel, which says nothing and may change.
    assume(font.getlength(text) == sum(map(font.getlength, text)))
    ascent, descent = font.getmetrics()
    whole = Image.new("L", (round(font.getlength(text)), HEIGHT))
    at = (0, (HEIGHT - ascent - descent) // 2 + ascent)
    ImageDraw.Draw(whole).text(at, text, fill=255, font=font, anchor="ls")
    assert same(strip(text, size), np.asarray(whole))


@given(TEXTS)
@settings(max_examples=30, deadline=None)
def test_the_width_is_the_sum_of_the_advances(text):
    assert strip(text).shape[1] == sum(strip(c).shape[1] for c in text)


def test_the_same_text_gives_the_same_strip_from_every_renderer():
    assert same(strip("Déjà vu"), Renderer(render.packaged_font(), HEIGHT).strip("Déjà vu", SIZE))


def test_a_strip_may_be_written_to_without_changing_the_next():
    first = strip("a")
    kept = first.copy()
    first[:] = 7
    assert same(strip("a"), kept)


def test_a_strip_is_one_block_of_memory():
    assert strip("Hello").flags.c_contiguous and strip("Hello").flags.owndata


def test_words_without_descenders_stand_on_the_same_row_as_those_with():
    with_descender = strip("nnnpn")
    width = strip("nnn").shape[1]
    assert same(strip("nnn"), with_descender[:, :width])


@pytest.mark.parametrize("size", [12, 20, 24])
def test_ascent_and_descent_are_centred(size):
    font = basic_font(size)
    ascent, descent = font.getmetrics()
    above = (HEIGHT - ascent - descent) // 2
    last = np.flatnonzero(strip("H", size).any(1))[-1]
    assert last == above + ascent - 1


def test_letters_too_large_for_the_height_are_cut_on_both_sides():
    pixels = strip("|", 64)
    assert len(pixels) == HEIGHT and pixels[0].any() and pixels[-1].any()


def test_a_larger_size_gives_a_wider_strip_of_the_same_height():
    assert strip("Hello", 28).shape[1] > strip("Hello", 14).shape[1]
    assert len(strip("Hello", 28)) == len(strip("Hello", 14))


@pytest.mark.parametrize(
    "space", ["\n", "\r\n", "\r", "\t", "\v", "\x1f", "\x85", "\u2028", "\u00a0", "\u202f"]
)
def test_line_breaks_tabs_and_other_white_space_are_a_space(space):
    assert same(strip(f"a{space}b"), strip("a b"))


@pytest.mark.parametrize(
    "nothing", ["\x00", "\x7f", "\u00ad", "\u200b", "\u200f", "\ufeff", "\ufe0f", "\U000e0101"]
)
def test_controls_and_characters_that_only_direct_others_are_nothing(nothing):
    assert same(strip(f"a{nothing}b"), strip("ab"))


@pytest.mark.parametrize("text", ["", "\x00", "\u200b\ufeff"])
def test_an_empty_text_is_one_column_of_background(text):
    assert strip(text).shape == (HEIGHT, 1)
    assert not strip(text).any()


def test_a_space_is_background_as_wide_as_the_space():
    assert strip(" ").shape[1] > 1
    assert not strip(" ").any()


def test_a_cyrillic_and_a_latin_a_give_the_same_strip():
    assert same(strip("\u0430 \u0441\u0430t"), strip("a cat"))


def test_zero_and_o_differ_a_little():
    zero, letter = strip("0"), strip("O")
    width = max(zero.shape[1], letter.shape[1])
    zero, letter = (np.pad(pixels, ((0, 0), (0, width - pixels.shape[1]))) for pixels in (zero, letter))
    difference = np.abs(zero.astype(int) - letter).mean() / 255
    assert 0 < difference < 0.25


def test_composed_and_decomposed_letters_give_the_same_strip():
    assert same(strip("e\u0301te\u0301"), strip("été"))


def test_a_combining_mark_without_a_composed_letter_stands_over_its_letter():
    assert strip("q\u0303").shape == strip("q").shape
    assert (strip("q\u0303") >= strip("q")).all() and not same(strip("q\u0303"), strip("q"))


def test_a_first_letter_that_reaches_to_the_left_is_cut_at_the_edge():
    j = strip("nj")[:, strip("n").shape[1] :]
    assert same(strip("j"), j)


def test_many_threads_draw_what_one_draws():
    texts = [f"{chr(ord('a') + i % 26)}{chr(0x391 + i % 17)} {i} ж" for i in range(200)]
    sizes = (14, 19, 24)
    alone = [renderer().strip(text, size) for text in texts for size in sizes]
    fresh = Renderer(render.packaged_font(), HEIGHT)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda job: fresh.strip(*job), [(t, s) for t in texts for s in sizes]))
    assert all(map(same, alone, together))


def test_a_sentence_is_drawn_in_a_fraction_of_a_millisecond():
    text = "My sister would like to buy a green dres"
    strip(text)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        strip(text)
        times.append(time.perf_counter() - start)
    assert min(times) < 1e-3  # 0.08 ms here; drawing whole lines took 0.45


@given(ANY_TEXTS)
@settings(max_examples=100, deadline=None)
def test_any_text_can_be_drawn(text):
    assert strip(text).shape[1] >= 1


@pytest.mark.parametrize("text", ["\ud800", "\U0010ffff", "漢", "\ufdfd" * 3, "a\u0488"])
def test_characters_beyond_the_font_can_be_drawn(text):
    assert strip(text).any()


# fonts


def test_missing_lists_each_character_without_a_glyph_once():
    assert renderer().missing("漢 a字漢é") == ["漢", "字"]


def test_white_space_and_controls_are_not_missing():
    assert renderer().missing("a\n\t\u202f\u3000\x00\u200b\u200f\ufe0f\r\n") == []


@pytest.mark.parametrize(
    "text", ["Où est la gare ?", "Straße, Žluťoučký", "Добрый день", "Καλημέρα", "½ € œ « »"]
)
def test_the_packaged_font_has_the_letters_of_european_languages(text):
    assert renderer().missing(text) == []


def test_a_decomposed_letter_that_the_font_has_composed_is_not_missing():
    assert renderer().missing("e\u0301") == []


@pytest.mark.parametrize("font", [b"", b"not a font", b"\x00\x01\x00\x00" + b"x" * 100])
def test_bytes_that_are_no_font_are_refused(font):
    with pytest.raises(
        ValueError, match="^the font cannot be used at 32 pixels .*TrueType or OpenType font$"
    ):
        Renderer(font, HEIGHT)


def test_a_size_of_nothing_is_refused():
    with pytest.raises(ValueError, match="^the font cannot be used at 0 pixels"):
        strip("a", 0)


def test_a_font_file_is_read_as_it_is(tmp_path):
    (tmp_path / "a.ttf").write_bytes(render.packaged_font())
    assert render.read_font(tmp_path / "a.ttf") == render.packaged_font()


def test_a_font_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="none.ttf is not there; name a TrueType or OpenType font file"
    ):
        render.read_font(tmp_path / "none.ttf")


def test_a_folder_is_no_font_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="is a folder; name a TrueType or OpenType font file"):
        render.read_font(tmp_path)


def test_a_file_that_is_no_font_is_named(tmp_path):
    (tmp_path / "a.ttf").write_text("hello")
    with pytest.raises(ValueError, match="a.ttf is no font; name a TrueType or OpenType font file"):
        render.read_font(tmp_path / "a.ttf")


# pictures


@given(STRIPS)
@settings(max_examples=100, deadline=None)
def test_a_png_of_any_strip_gives_the_strip_back(pixels):
    assert same(picture_strip(png(pixels), len(pixels), WHERE), pixels)


@given(ANY_TEXTS, st.sampled_from((12, 24, 40)))
@settings(max_examples=50, deadline=None)
def test_a_png_of_a_drawn_text_gives_the_strip_back(text, size):
    assert same(read(png(strip(text, size))), strip(text, size))


def test_a_png_shows_dark_ink_on_white():
    with Image.open(BytesIO(png(strip("Hello")))) as image:
        assert image.mode == "L"
        assert same(255 - np.asarray(image), strip("Hello"))


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "TIFF"])
def test_formats_without_loss_give_the_pixels_exactly(kind):
    assert same(read(saved(Image.fromarray(255 - strip("Hello")), kind)), strip("Hello"))


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_formats_with_loss_give_about_the_same(kind):
    got = read(saved(drawn(), kind, quality=95)).astype(int)
    assert np.abs(got - read(saved(drawn()))).mean() < 6


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA"])
def test_ink_is_high_in_every_mode(mode):
    pixels = read(saved(drawn().convert("L").point(lambda v: 255 * (v > 127)).convert(mode)))
    assert same(pixels, read(saved(drawn().convert("L").point(lambda v: 255 * (v > 127)))))
    assert pixels.max() == 255 and pixels[0, 0] == 0


def test_a_cmyk_jpeg_is_read():
    pixels = read(saved(drawn().convert("CMYK"), "JPEG", quality=95))
    assert pixels[0, 0] < 10 and pixels.max() > 240


def test_sixteen_bits_of_grey_keep_the_upper_eight():
    grey = np.asarray(drawn().convert("L"))
    assert same(read(saved(Image.fromarray(grey.astype(np.uint16) * 256 + 7))), 255 - grey)


def test_light_ink_on_a_dark_ground_gives_the_same_strip():
    assert same(read(saved(drawn(ground="black", ink="white"))), read(saved(drawn())))


def test_coloured_ink_on_a_coloured_ground_goes_from_0_to_255():
    pixels = read(saved(drawn(ground="yellow", ink="navy")))
    assert (pixels.max(), pixels[0, 0]) == (255, 0)


@pytest.mark.parametrize("ground, ink", [(240, 60), (30, 200)])
def test_grey_ink_on_grey_paper_is_like_black_on_white(ground, ink):
    grey = (ground + (ink - ground) * (strip("Hello") / 255)).round().astype(np.uint8)
    got = read(saved(Image.fromarray(grey))).astype(int)
    assert np.abs(got - strip("Hello")).max() <= 2


def test_a_picture_of_next_to_no_contrast_is_not_blown_up():
    noise = np.random.default_rng(0).integers(250, 256, (HEIGHT, 60), np.uint8)
    assert read(saved(Image.fromarray(noise))).max() <= 5


def test_the_ground_is_the_middle_of_the_border_not_of_the_picture():
    image = Image.new("L", (40, HEIGHT), 255)
    image.paste(0, (1, 1, 39, HEIGHT - 1))
    assert read(saved(image))[5, 5] == 255


def test_what_is_transparent_is_white():
    image = drawn(mode="RGBA", ground="#00000000", ink="black")
    pixels = read(saved(image))
    assert pixels[0, 0] == 0 and pixels.max() == 255


def test_white_ink_on_nothing_is_seen():
    dark, light = (drawn(mode="RGBA", ground=f"{ink}00", ink=f"{ink}ff") for ink in ("#000000", "#ffffff"))
    assert same(read(saved(light)), read(saved(dark)))


def test_a_transparent_colour_of_a_palette_is_white():
    image = drawn(ground="red", ink="black").quantize(8)
    red = image.getpixel((0, 0))
    assert read(saved(image, "GIF", transparency=red))[0, 0] == 0


def test_a_picture_without_anything_is_background():
    assert not read(saved(Image.new("RGBA", (10, HEIGHT)))).any()


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_a_picture_is_turned_as_its_exif_orientation_says(orientation):
    turns = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}
    exif = Image.Exif()
    exif[0x0112] = orientation
    turned = drawn().transpose(turns[orientation])
    assert same(read(saved(turned, exif=exif)), read(saved(drawn())))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_the_first_frame_of_several_counts(kind):
    frames = [drawn("one"), drawn("two")]
    options = {"lossless": True} if kind == "WEBP" else {}
    several = saved(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    assert same(read(several), read(saved(frames[0], kind, **options)))


def test_two_photographs_in_one_jpeg_are_read_as_the_first():
    assert read(saved(drawn(), "MPO", save_all=True, append_images=[drawn("two")])).shape == (HEIGHT, 90)


def test_another_height_is_scaled_with_the_ratio_of_the_sides():
    assert read(saved(drawn()), 16).shape == (16, 45)
    assert read(saved(drawn()), 64).shape == (64, 180)


def test_a_scaled_picture_looks_like_one_drawn_smaller():
    small, large = strip("Hello", 24), Renderer(render.packaged_font(), 2 * HEIGHT).strip("Hello", 48)
    scaled = read(png(large))
    width = min(small.shape[1], scaled.shape[1])
    alike = np.corrcoef(small[:, :width].ravel(), scaled[:, :width].ravel())[0, 1]
    assert abs(small.shape[1] - scaled.shape[1]) <= 2 and alike > 0.8


def test_a_picture_much_higher_than_wide_is_one_column():
    assert read(saved(Image.new("L", (1, 2_000), 255))).shape == (HEIGHT, 1)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_strip_may_be_written_to(kind):
    read(saved(drawn(), kind))[:] = 0
    read(saved(drawn(), kind), 20)[:] = 0


# broken pictures


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        "Où est la gare ?".encode(),
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.7",
        b"\x89PNG",
    ],
)
def test_what_is_no_picture_is_refused_with_what_is_allowed(data):
    with pytest.raises(
        ValueError, match=f"^{WHERE}: no picture that can be read; allowed: PNG, JPEG, GIF, BMP, TIFF, WebP"
    ):
        read(data)


def test_an_empty_file_is_refused():
    with pytest.raises(ValueError, match=f"^{WHERE}: an empty file, no picture; allowed: PNG"):
        read(b"")


@pytest.mark.parametrize("kind", ["ICO", "PPM", "EPS", "TGA"])
def test_formats_beyond_those_named_are_refused(kind):
    with pytest.raises(ValueError, match=f"^{WHERE}: no picture that can be read; allowed: PNG"):
        read(saved(drawn(), kind))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_cut_off_in_the_middle_is_refused_in_one_line(kind):
    data = saved(drawn(), kind)
    with pytest.raises(ValueError, match=f"^{WHERE}: .*allowed: PNG") as error:
        read(data[: len(data) // 2])
    assert "\n" not in str(error.value)


@given(st.sampled_from(FORMATS), st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.filterwarnings("ignore")
def test_a_damaged_file_gives_a_strip_or_one_line(kind, data):
    content = bytearray(saved(drawn("a").resize((20, 10)), kind))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert len(read(bytes(content))) == HEIGHT
    except ValueError as error:
        assert str(error).startswith(f"{WHERE}: ") and "\n" not in str(error)


def claimed(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it has so many pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("width, height", [(8_000, 7_000), (60_000, 60_000), (2**31 - 1, 2**31 - 1)])
def test_more_pixels_than_allowed_are_refused_before_they_are_read(width, height):
    with pytest.raises(
        ValueError, match=f"^{WHERE}: .*picture.*; at most 50,000,000 are allowed; scale it down"
    ):
        read(claimed(width, height))


@pytest.mark.filterwarnings("error")
def test_a_warning_of_too_many_pixels_is_the_same_refusal_when_warnings_are_errors():
    with pytest.raises(ValueError, match=f"^{WHERE}: too large a picture; at most 50,000,000 are allowed"):
        read(claimed(10_000, 10_000))


def test_a_line_too_wide_for_its_height_is_refused():
    with pytest.raises(
        ValueError, match="40,000 × 10 pixels would be 128,000 wide at a height of 32; allowed"
    ):
        read(saved(Image.new("1", (40_000, 10), 1)))


def test_pixels_of_32_bits_are_refused():
    with pytest.raises(ValueError, match=f"^{WHERE}: pixels of 32 bits; save the picture with 8 or 16 bits"):
        read(saved(Image.new("F", (10, HEIGHT)), "TIFF"))


# ---- words


WORDS = st.lists(st.integers(1, 9), min_size=1, max_size=6)  # widths
GAPS = st.integers(1, 4)


def blocks(widths, gap, before=0, after=0):
    """A strip of solid words of these widths, each with its own grey, so far apart."""
    parts = [np.zeros((3, before), np.uint8)]
    for grey, width in enumerate(widths, 50):
        parts += [np.full((3, width), grey, np.uint8), np.zeros((3, gap), np.uint8)]
    return np.concatenate([*parts[:-1], np.zeros((3, after), np.uint8)], 1)


def test_each_word_begins_where_a_patch_does():
    aligned = render.align_words(blocks([3, 7, 2], gap=5, before=2, after=6), gap=2, step=4)
    # 3 and a gap of 2 take two patches of 4, 7 and a gap of 2 take three.
    assert aligned.shape == (3, 8 + 12 + 2)
    assert np.flatnonzero(aligned[0]).tolist() == [*range(3), *range(8, 15), *range(20, 22)]


@given(widths=WORDS, gap=GAPS, step=st.integers(1, 8), before=st.integers(0, 9))
def test_words_keep_their_pixels_and_their_order(widths, gap, step, before):
    strip_ = blocks(widths, gap + 1, before)
    aligned = render.align_words(strip_, gap, step)
    assert np.array_equal(aligned[:, aligned.any(0)], strip_[:, strip_.any(0)])
    starts = [int(np.flatnonzero(aligned[0] == grey)[0]) for grey in range(50, 50 + len(widths))]
    assert all(start % step == 0 for start in starts)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(strip_=STRIPS, gap=GAPS, step=st.integers(1, 8))
def test_aligning_once_more_changes_nothing(strip_, gap, step):
    once = render.align_words(strip_, gap, step)
    assert np.array_equal(render.align_words(once, gap, step), once)


def test_less_than_the_gap_is_inside_a_word():
    assert render.align_words(blocks([3, 3], gap=2), gap=3, step=10).shape == (3, 8)
    assert render.align_words(blocks([3, 3], gap=3), gap=3, step=10).shape == (3, 13)


def test_a_strip_without_ink_is_one_column():
    assert np.array_equal(render.align_words(np.zeros((5, 30), np.uint8), 2, 4), np.zeros((5, 1), np.uint8))


@pytest.mark.parametrize("size", [9, 12, 15])
def test_words_of_drawn_text_are_told_apart_and_letters_are_not(size):
    text = 'The "illicit" mill, 11 till 1:11 a.m. — rural r.l.'
    drawn = Renderer(render.packaged_font(), 16).strip(text, size)
    aligned = render.align_words(drawn, 3, 200)
    assert -(-aligned.shape[1] // 200) == len(text.split())


@pytest.mark.parametrize("height", [16, 24, 32, 48, 64, 100])
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("ground", [255, 240, 20])
def test_words_of_pictures_of_any_size_are_told_apart(height, kind, ground):
    text = "My sister would like to buy a green dress."
    ink = Renderer(render.packaged_font(), height).strip(text, height * 3 // 4)
    grey = (ground + ((0 if ground > 128 else 255) - ground) * (ink / 255)).round().astype(np.uint8)
    picture = saved(Image.fromarray(grey), kind, **({"quality": 85} if kind == "JPEG" else {}))
    aligned = render.align_words(picture_strip(picture, 16, WHERE), 3, 200)
    assert -(-aligned.shape[1] // 200) == len(text.split())


@given(strip_=STRIPS)
def test_half_a_strip_is_the_mean_of_fours(strip_):
    half = render.halved(strip_)
    assert half.shape == (-(-strip_.shape[0] // 2), -(-strip_.shape[1] // 2))
    assert half[0, 0] == int(strip_[:2, :2].sum()) // 4


@given(strip_=STRIPS, rows=st.integers(-3, 3))
@example(strip_=np.zeros((2, 1), np.uint8), rows=-3)
def test_a_moved_strip_keeps_what_stays_inside(strip_, rows):
    moved = render.moved_down(strip_, rows)
    for row, pixels in enumerate(moved):
        from_row = row - rows
        inside = 0 <= from_row < len(strip_)
        assert np.array_equal(pixels, strip_[from_row] if inside else np.zeros_like(pixels))
