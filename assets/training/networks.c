/* LeNet, an MLP and softmax regression: parameters, forward and backward of a piece of a batch, and evaluation.

   All memory is here, in arrays of a fixed size: a device needs what the module says, and no more.
   What JavaScript calls is marked by EXPORT. */

#include "kernels.c"

#define EXPORT(name) __attribute__((export_name(#name))) name

enum { TRAIN = 6000, TEST = 1000, IMAGES = TRAIN + TEST, SIDE = 28, PIXELS = SIDE * SIDE };
enum { CLASSES = 10, HIDDEN = 128 };

/* LeNet: a convolution is a dense layer on windows. The second pooling drops the last line and
   column of what it could get, so neither convolution computes what only leads there. */
enum { SIDE1 = 24, MAPS1 = 20, KERNEL1 = 3, WINDOW1 = KERNEL1 * KERNEL1 };
enum { SIDE2 = 8, MAPS2 = 50, KERNEL2 = 5, WINDOW2 = KERNEL2 * KERNEL2 * MAPS1 };
enum { POOLED1 = SIDE1 / 2, POOLED2 = SIDE2 / 2, FEATURES = POOLED2 * POOLED2 * MAPS2 };

/* Where the parameters of a layer start: weights, then biases. The head is the two dense layers. */
enum {
    LAYER2 = (WINDOW1 + 1) * MAPS1,
    LENET_HEAD = LAYER2 + (WINDOW2 + 1) * MAPS2,
    LAST = (HIDDEN + 1) * CLASSES,
    LENET = LENET_HEAD + (FEATURES + 1) * HIDDEN + LAST,
    MLP = (PIXELS + 1) * HIDDEN + LAST,
    SOFTMAX = (PIXELS + 1) * CLASSES,
};

/* How many images go through the network at once: as many as the caches hold. */
enum { LENET_GROUP = 8, GROUP = 32 };

static struct {
    unsigned char labels[IMAGES], pixels[IMAGES][PIXELS / 2];
} data;
static int order[IMAGES];

static int size; /* LENET, MLP or SOFTMAX: the number of parameters says which network it is */
static float parameters[LENET];
static float gradients[4][LENET + 2]; /* then the summed loss and the number of right answers */

static float image[GROUP * PIXELS], hidden[GROUP * HIDDEN], score[GROUP * CLASSES];
static float d_hidden[GROUP * HIDDEN];
static float windows1[LENET_GROUP * SIDE1 * SIDE1 * WINDOW1];
static float maps1[LENET_GROUP * SIDE1 * SIDE1 * MAPS1];
static float pooled1[LENET_GROUP * POOLED1 * POOLED1 * MAPS1];
static float windows2[LENET_GROUP * SIDE2 * SIDE2 * WINDOW2];
static float maps2[LENET_GROUP * SIDE2 * SIDE2 * MAPS2];
static float pooled2[LENET_GROUP * FEATURES];

void *EXPORT(place_of_data)(void) { return &data; }
void *EXPORT(place_of_parameters)(void) { return parameters; }
void *EXPORT(place_of_gradient)(int slot) { return gradients[slot]; }

static float *start_layer(float *w, int in, int out)
{
    float deviation = __builtin_sqrtf(2.0f / in);
    for (int i = 0; i < in * out; i++)
        *w++ = normal() * deviation;
    fill(w, out, 0);
    return w + out;
}

/* Draw the parameters (He et al., 2015) of softmax regression (1 layer), the MLP (2) or LeNet (4);
   the number of them. */
int EXPORT(start)(int layers, unsigned seed)
{
    float *w = parameters;
    state = seed;
    if (layers == 4) {
        w = start_layer(w, WINDOW1, MAPS1);
        w = start_layer(w, WINDOW2, MAPS2);
    }
    if (layers > 1)
        w = start_layer(w, layers == 4 ? FEATURES : PIXELS, HIDDEN);
    w = start_layer(w, layers > 1 ? HIDDEN : PIXELS, CLASSES);
    for (int i = 0; i < IMAGES; i++)
        order[i] = i;
    return size = w - parameters;
}

/* The order of the training images in an epoch depends on the seed and the epoch alone. */
void EXPORT(shuffle)(unsigned seed, int epoch)
{
    state = seed;
    state = draw() + epoch;
    for (int i = 0; i < TRAIN; i++)
        order[i] = i;
    for (int i = TRAIN - 1; i > 0; i--) {
        int j = draw() % (i + 1), moved = order[i];
        order[i] = order[j];
        order[j] = moved;
    }
}

static int group(void) { return size == LENET ? LENET_GROUP : GROUP; }
static int head(void) { return size == LENET ? LENET_HEAD : 0; }
static int inputs(void) { return size == LENET ? FEATURES : PIXELS; }
static float *features(void) { return size == LENET ? pooled2 : image; }

/* 0 to 15: two pixels a byte, the first one in the lower half */
static int grey(int image, int pixel)
{
    return (data.pixels[image][pixel / 2] >> (pixel % 2 * 4)) & 15;
}

/* The images at these places of the order, to the scores; what backward needs stays in the arrays. */
static void forward(int first, int n)
{
    const float *w = parameters;
    for (int i = 0; i < n; i++)
        for (int p = 0; p < PIXELS; p++)
            image[i * PIXELS + p] = grey(order[first + i], p) / 15.0f;
    if (size == SOFTMAX) {
        layer(image, n, PIXELS, CLASSES, w, score);
        return;
    }
    if (size == LENET) {
        for (int i = 0; i < n; i++)
            windows(image + i * PIXELS, SIDE, 1, KERNEL1, SIDE1,
                    windows1 + i * SIDE1 * SIDE1 * WINDOW1);
        layer(windows1, n * SIDE1 * SIDE1, WINDOW1, MAPS1, w, maps1);
        relu(maps1, n * SIDE1 * SIDE1 * MAPS1);
        for (int i = 0; i < n; i++) {
            float *pooled = pooled1 + i * POOLED1 * POOLED1 * MAPS1;
            pool(maps1 + i * SIDE1 * SIDE1 * MAPS1, SIDE1, MAPS1, pooled);
            windows(pooled, POOLED1, MAPS1, KERNEL2, SIDE2, windows2 + i * SIDE2 * SIDE2 * WINDOW2);
        }
        layer(windows2, n * SIDE2 * SIDE2, WINDOW2, MAPS2, w + LAYER2, maps2);
        relu(maps2, n * SIDE2 * SIDE2 * MAPS2);
        for (int i = 0; i < n; i++)
            pool(maps2 + i * SIDE2 * SIDE2 * MAPS2, SIDE2, MAPS2, pooled2 + i * FEATURES);
    }
    layer(features(), n, inputs(), HIDDEN, w + head(), hidden);
    relu(hidden, n * HIDDEN);
    layer(hidden, n, HIDDEN, CLASSES, w + size - LAST, score);
}

/* From the gradient of the scores. Where an array is needed no more, its gradient takes its place. */
static void backward(int n, float *dw)
{
    const float *w = parameters;
    if (size == SOFTMAX) {
        layer_back(image, n, PIXELS, CLASSES, w, score, dw, 0);
        return;
    }
    layer_back(hidden, n, HIDDEN, CLASSES, w + size - LAST, score, dw + size - LAST, d_hidden);
    relu_back(hidden, d_hidden, n * HIDDEN);
    if (size == MLP) {
        layer_back(image, n, PIXELS, HIDDEN, w, d_hidden, dw, 0);
        return;
    }
    static float d_features[LENET_GROUP * FEATURES];
    layer_back(pooled2, n, FEATURES, HIDDEN, w + LENET_HEAD, d_hidden, dw + LENET_HEAD, d_features);
    for (int i = 0; i < n; i++)
        pool_back(maps2 + i * SIDE2 * SIDE2 * MAPS2, SIDE2, MAPS2, d_features + i * FEATURES);
    static float d_windows2[LENET_GROUP * SIDE2 * SIDE2 * WINDOW2];
    layer_back(windows2, n * SIDE2 * SIDE2, WINDOW2, MAPS2, w + LAYER2, maps2, dw + LAYER2,
               d_windows2);
    for (int i = 0; i < n; i++) {
        float *d_pooled = pooled1 + i * POOLED1 * POOLED1 * MAPS1;
        windows_back(d_pooled, POOLED1, MAPS1, KERNEL2, SIDE2,
                     d_windows2 + i * SIDE2 * SIDE2 * WINDOW2);
        pool_back(maps1 + i * SIDE1 * SIDE1 * MAPS1, SIDE1, MAPS1, d_pooled);
    }
    layer_back(windows1, n * SIDE1 * SIDE1, WINDOW1, MAPS1, w, maps1, dw, 0);
}

/* The summed gradient of n training images from the first on, loss and right answers behind it. */
void EXPORT(piece)(int first, int n, int slot)
{
    float *dw = gradients[slot];
    double loss = 0;
    int right = 0;
    fill(dw, size, 0);
    for (int end = first + n; first < end; first += group()) {
        int some = end - first < group() ? end - first : group();
        forward(first, some);
        for (int i = 0; i < some; i++) {
            int label = data.labels[order[first + i]];
            right += largest(score + i * CLASSES, CLASSES) == label;
            loss += cross_entropy(score + i * CLASSES, CLASSES, label);
        }
        backward(some, dw);
    }
    dw[size] = loss;
    dw[size + 1] = right;
}

/* How many of n test images, from the first on, the network knows. */
int EXPORT(known)(int first, int n)
{
    int right = 0;
    for (int end = first + n; first < end; first += group()) {
        int some = end - first < group() ? end - first : group();
        forward(TRAIN + first, some);
        for (int i = 0; i < some; i++)
            right += largest(score + i * CLASSES, CLASSES) == data.labels[order[TRAIN + first + i]];
    }
    return right;
}

void EXPORT(add)(float *into, const float *x, int count) { sum(into, x, count); }

/* One step of gradient descent, along the gradient in slot 0 */
void EXPORT(update)(float rate)
{
    for (int i = 0; i < size; i++)
        parameters[i] -= rate * gradients[0][i];
}
