/* The reference of the ray benchmark: the same walk over the same grid as botyard's kernel, in C, for one thread.
   Built by bench/reference.py where gcc is present; nothing of botyard uses it. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

void cast(const double *poses, int n, const double *beams, int m, double r_max, double x0, double y0, double h, int nx, int ny,
          const int32_t *start, const double *seg, const uint8_t *clear, double *out)
{
    const double inv = 1.0 / h, t_max = r_max * inv;
    for (int p = 0; p < n; p++) {
        const double gx = (poses[3 * p] - x0) * inv, gy = (poses[3 * p + 1] - y0) * inv;
        const double c = cos(poses[3 * p + 2]), s = sin(poses[3 * p + 2]);
        for (int b = 0; b < m; b++) {
            double dx = c * beams[2 * b] - s * beams[2 * b + 1], dy = s * beams[2 * b] + c * beams[2 * b + 1];
            if (fabs(dx) < 1e-12) dx = 1e-12;
            if (fabs(dy) < 1e-12) dy = 1e-12;
            const double inv_x = 1.0 / dx, inv_y = 1.0 / dy;
            const uint8_t *free_side = clear + (size_t)((dx > 0) + 2 * (dy > 0)) * nx * ny;
            long ix = (long)floor(gx), iy = (long)floor(gy);
            double t = 0.0, best = t_max;
            while (t < best && ix >= 0 && ix < nx && iy >= 0 && iy < ny) {
                long side = free_side[iy * nx + ix];
                if (side == 0) {
                    const long cell = iy * nx + ix;
                    for (int32_t k = start[cell]; k < start[cell + 1]; k++) {
                        const double ax = seg[4 * k] - gx, ay = seg[4 * k + 1] - gy, ex = seg[4 * k + 2], ey = seg[4 * k + 3];
                        double den = dx * ey - dy * ex, nt = ax * ey - ay * ex, nu = ax * dy - ay * dx;
                        if (den < 0) { den = -den; nt = -nt; nu = -nu; }
                        const double slack = 1e-12 * den;
                        if (nt >= 0 && nt < best * den && nu >= -slack && nu <= den + slack) best = nt / den;
                    }
                    side = 1;
                }
                const double tx = ((dx > 0 ? ix + side : ix - side + 1) - gx) * inv_x;
                const double ty = ((dy > 0 ? iy + side : iy - side + 1) - gy) * inv_y;
                if (tx < ty) {
                    t = tx;
                    ix += dx > 0 ? side : -side;
                    const long q = (long)floor(gy + t * dy);
                    iy = dy > 0 ? (q > iy ? q : iy) : (q < iy ? q : iy);
                } else {
                    t = ty;
                    iy += dy > 0 ? side : -side;
                    const long q = (long)floor(gx + t * dx);
                    ix = dx > 0 ? (q > ix ? q : ix) : (q < ix ? q : ix);
                }
            }
            out[(size_t)p * m + b] = best * h;
        }
    }
}
