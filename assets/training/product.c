/* The matrix product, in which nearly all of the time goes. What is a convolution elsewhere is one of
   these too: of windows, as rows, and filters, as columns. */

typedef float Vector __attribute__((vector_size(16), aligned(4)));

/* A matrix in memory: where it starts, and the distances between its rows and between its columns.
   Exchange the two, and it is transposed. */
typedef struct {
    const float *at;
    int row, column;
} Matrix;

/* A tile of the product that stays in registers, and how much of a sum it adds before it writes. */
enum { ROWS = 4, WIDTH = 2, COLUMNS = 4 * WIDTH, DEPTH = 256 };

static float panel[DEPTH][COLUMNS];

/* Columns j, j + 1, ... of rows k to k + depth of B, next to each other; zeros past the last one. */
static void pack(Matrix B, int k, int depth, int j, int columns)
{
    for (int d = 0; d < depth; d++) {
        const float *b = B.at + (k + d) * B.row + j * B.column;
        if (columns == COLUMNS && B.column == 1)
            for (int w = 0; w < WIDTH; w++)
                *(Vector *)&panel[d][4 * w] = *(Vector *)&b[4 * w];
        else
            for (int c = 0; c < COLUMNS; c++)
                panel[d][c] = c < columns ? b[c * B.column] : 0;
    }
}

/* Add up to ROWS rows of A times the panel to C, whose rows are n apart. */
static void tile(Matrix A, int rows, int depth, float *C, int n, int columns)
{
    const float *a[ROWS];
    Vector sum[ROWS][WIDTH] = {0};
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        a[r] = A.at + (r < rows ? r : rows - 1) * A.row; /* the last row again: not written */
    for (int d = 0; d < depth; d++) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float factor = *a[r];
            a[r] += A.column;
#pragma unroll
            for (int w = 0; w < WIDTH; w++)
                sum[r][w] += factor * *(Vector *)&panel[d][4 * w];
        }
    }
    float part[ROWS][COLUMNS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int w = 0; w < WIDTH; w++) {
            if (columns == COLUMNS && r < rows)
                *(Vector *)&C[r * n + 4 * w] += sum[r][w];
            else
                *(Vector *)&part[r][4 * w] = sum[r][w];
        }
    }
    if (columns < COLUMNS)
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++)
                C[r * n + c] += part[r][c];
}

/* C (m, n) += A (m, depth) B (depth, n) */
static void product(Matrix A, Matrix B, float *C, int m, int n, int depth)
{
    for (int k = 0; k < depth; k += DEPTH) {
        int deep = depth - k < DEPTH ? depth - k : DEPTH;
        for (int j = 0; j < n; j += COLUMNS) {
            int columns = n - j < COLUMNS ? n - j : COLUMNS;
            pack(B, k, deep, j, columns);
            for (int i = 0; i < m; i += ROWS) {
                Matrix rows = {A.at + i * A.row + k * A.column, A.row, A.column};
                tile(rows, m - i < ROWS ? m - i : ROWS, deep, C + i * n + j, n, columns);
            }
        }
    }
}
