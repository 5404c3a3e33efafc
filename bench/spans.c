/* The reference of the benchmark of spans: exact scans of few walls, in C, for one thread.
   Each wall within reach is turned into the sensor's frame. Only the beams between the bearings of its ends are tested,
   by vector instructions. Built by bench/spans.py where gcc is present; nothing of botyard uses it. */
#include <math.h>
#include <stddef.h>

#define PI 3.14159265358979323846

/* atan2 with an error below 1e-4 rad, which the margin of a beam covers (Abramowitz & Stegun, 4.4.47) */
static inline double bearing(double y, double x)
{
    const double ax = fabs(x), ay = fabs(y), z = fmin(ax, ay) / (fmax(ax, ay) + 1e-12), q = z * z;
    double a = ((-0.0464964749 * q + 0.15931422) * q - 0.327622764) * q * z + z;
    if (ay > ax) a = 0.5 * PI - a;
    if (x < 0.0) a = PI - a;
    return y < 0.0 ? -a : a;
}

/* Shorten the beams that may lie between two bearings to a wall from (ax, ay) with vector (ex, ey). */
static inline void shorten(int rays, double low, double high, double fov, double ax, double ay, double ex, double ey,
                           const double *cosines, const double *sines, double *ranges)
{
    const double step = fov / (rays - 1), cross = ax * ey - ay * ex;
    int first = (int)floor((low + 0.5 * fov) / step - 1e-2), last = (int)ceil((high + 0.5 * fov) / step + 1e-2);
    if (first < 0) first = 0;
    if (last > rays - 1) last = rays - 1;
    for (int k = first; k <= last; k++) {
        const double inv = 1.0 / (cosines[k] * ey - sines[k] * ex);
        const double t = cross * inv, u = (ax * sines[k] - ay * cosines[k]) * inv;
        const int nearer = (u >= -1e-6) & (u <= 1.000001) & (t >= 0.0) & (t < ranges[k]);
        ranges[k] = nearer ? t : ranges[k];
    }
}

/* poses: scans x 3; walls: count x 4, ends; cosines, sines: of each beam in the sensor's frame; out: scans x rays */
void scan(int scans, const double *poses, int count, const double *walls, int rays, double fov, double reach,
          const double *cosines, const double *sines, double *out)
{
    for (int i = 0; i < scans; i++) {
        const double x = poses[3 * i], y = poses[3 * i + 1], c = cos(poses[3 * i + 2]), s = sin(poses[3 * i + 2]);
        double *ranges = out + (size_t)i * rays;
        for (int k = 0; k < rays; k++) ranges[k] = reach;
        for (int j = 0; j < count; j++) {
            const double *w = walls + 4 * j;
            const double wx = w[0] - x, wy = w[1] - y, vx = w[2] - w[0], vy = w[3] - w[1];
            const double u = fmin(fmax(-(wx * vx + wy * vy) / (vx * vx + vy * vy), 0.0), 1.0);
            const double px = wx + u * vx, py = wy + u * vy;
            if (px * px + py * py > reach * reach) continue;
            const double ax = c * wx + s * wy, ay = c * wy - s * wx, ex = c * vx + s * vy, ey = c * vy - s * vx;
            const double a = bearing(ay, ax), b = bearing(ay + ey, ax + ex), low = fmin(a, b), high = fmax(a, b);
            if (high - low > PI) {
                /* The wall crosses the cut of the angle. */
                shorten(rays, -PI - 0.1, low, fov, ax, ay, ex, ey, cosines, sines, ranges);
                shorten(rays, high, PI + 0.1, fov, ax, ay, ex, ey, cosines, sines, ranges);
            } else {
                shorten(rays, low, high, fov, ax, ay, ex, ey, cosines, sines, ranges);
            }
        }
    }
}
