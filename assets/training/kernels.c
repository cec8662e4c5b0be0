/* The kernels of in-page training: one loop each, over float32 arrays with the channels last.

   Every sum has one order, which depends on nothing but the sizes. No option of the compiler may
   change it, so that SIMD, plain JavaScript and every browser give the same bits. */

#include "product.c"

static void fill(float *x, int count, float value)
{
    for (int i = 0; i < count; i++)
        x[i] = value;
}

static void sum(float *into, const float *x, int count)
{
    for (int i = 0; i < count; i++)
        into[i] += x[i];
}

/* Y (n, out) = X (n, in) W (in, out) + b; in memory, b follows W. */
static void layer(const float *X, int n, int in, int out, const float *W, float *Y)
{
    const float *b = W + in * out;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < out; c++)
            Y[i * out + c] = b[c];
    product((Matrix){X, in, 1}, (Matrix){W, out, 1}, Y, n, out, in);
}

/* Add the sum of all rows to total: first of some of them, so that rounding stays small. */
static void sum_of_rows(float *total, const float *row, int n, int width)
{
    enum { SOME = 64, WIDEST = 128 };
    float some[WIDEST];
    for (int i = 0; i < n; i++) {
        if (i % SOME == 0)
            fill(some, width, 0);
        sum(some, row + i * width, width);
        if (i % SOME == SOME - 1 || i == n - 1)
            sum(total, some, width);
    }
}

/* Add the gradients of W and b to dW, and leave the gradient of X in dX, unless that is null. */
static void layer_back(const float *X, int n, int in, int out, const float *W, const float *dY,
                       float *dW, float *dX)
{
    product((Matrix){X, 1, in}, (Matrix){dY, out, 1}, dW, in, out, n);
    sum_of_rows(dW + in * out, dY, n, out);
    if (dX) {
        fill(dX, n * in, 0);
        product((Matrix){dY, out, 1}, (Matrix){W, 1, out}, dX, n, in, out);
    }
}

static void relu(float *x, int count)
{
    for (int i = 0; i < count; i++)
        x[i] = x[i] < 0 ? 0 : x[i];
}

static void relu_back(const float *x, float *dx, int count)
{
    for (int i = 0; i < count; i++)
        dx[i] = x[i] > 0 ? dx[i] : 0;
}

/* Each window of kernel x kernel of an image (side, side, channels) as a row: (out, out, window). */
static void windows(const float *image, int side, int channels, int kernel, int out, float *row)
{
    for (int y = 0; y < out; y++)
        for (int x = 0; x < out; x++)
            for (int line = y; line < y + kernel; line++) {
                const float *from = image + (line * side + x) * channels;
                for (int i = 0; i < kernel * channels; i++)
                    *row++ = from[i];
            }
}

static void windows_back(float *d_image, int side, int channels, int kernel, int out,
                         const float *d_row)
{
    fill(d_image, side * side * channels, 0);
    for (int y = 0; y < out; y++)
        for (int x = 0; x < out; x++)
            for (int line = y; line < y + kernel; line++) {
                sum(d_image + (line * side + x) * channels, d_row, kernel * channels);
                d_row += kernel * channels;
            }
}

/* Means of 2 x 2: (side, side, channels) -> (side / 2, side / 2, channels) */
static void pool(const float *x, int side, int channels, float *y)
{
    for (int line = 0; line < side; line += 2)
        for (int at = 0; at < side; at += 2, y += channels) {
            const float *upper = x + (line * side + at) * channels, *lower = upper + side * channels;
            for (int c = 0; c < channels; c++)
                y[c] = ((upper[c] + upper[c + channels]) + (lower[c] + lower[c + channels])) * 0.25f;
        }
}

/* x was pooled after relu; it becomes the gradient of what relu got. */
static void pool_back(float *x, int side, int channels, const float *dy)
{
    for (int line = 0; line < side; line++)
        for (int at = 0; at < side; at++, x += channels) {
            const float *d = dy + ((line / 2) * (side / 2) + at / 2) * channels;
            for (int c = 0; c < channels; c++)
                x[c] = x[c] > 0 ? d[c] * 0.25f : 0;
        }
}

typedef union {
    float value;
    int bits;
} Float;

/* e to the x, for x <= 0: 2 to a whole number, times the series of the rest */
static double exponential(double x)
{
    if (x < -80)
        return 0;
    int whole = (int)(x * 1.4426950408889634 - 0.5);
    double rest = x - whole * 0.6931471805599453, term = 1, series = 1;
    for (int i = 1; i < 11; i++)
        series += term *= rest / i;
    return series * (Float){.bits = (whole + 127) << 23}.value;
}

/* The natural logarithm, for 1 <= x: that of a power of 2, plus the series of the rest */
static double logarithm(double x)
{
    int whole = ((Float){x}.bits >> 23) - 127;
    double rest = x / (Float){.bits = (whole + 127) << 23}.value, series = 0;
    double ratio = (rest - 1) / (rest + 1), power = 2 * ratio;
    for (int i = 1; i < 24; i += 2, power *= ratio * ratio)
        series += power / i;
    return whole * 0.6931471805599453 + series;
}

/* Softmax and cross-entropy of one row of scores, which become their own gradient; the loss */
static double cross_entropy(float *score, int classes, int label)
{
    double power[16], all = 0, most = score[0], right = score[label];
    for (int c = 1; c < classes; c++)
        most = score[c] > most ? score[c] : most;
    for (int c = 0; c < classes; c++)
        all += power[c] = exponential(score[c] - most);
    for (int c = 0; c < classes; c++)
        score[c] = power[c] / all - (c == label);
    return logarithm(all) - (right - most);
}

static int largest(const float *score, int classes)
{
    int best = 0;
    for (int c = 1; c < classes; c++)
        best = score[c] > score[best] ? c : best;
    return best;
}

/* Whole numbers of 32 bits, the same in every browser (mulberry32) */
static unsigned state;

static unsigned draw(void)
{
    unsigned x = state += 0x6D2B79F5;
    x = (x ^ x >> 15) * (x | 1);
    x ^= x + (x ^ x >> 7) * (x | 61);
    return x ^ x >> 14;
}

/* Nearly normal, by whole numbers only: the sum of twelve uniform ones has variance 1. */
static float normal(void)
{
    int twelve = -(6 << 24);
    for (int i = 0; i < 12; i++)
        twelve += draw() >> 8;
    return (float)twelve / (1 << 24);
}
