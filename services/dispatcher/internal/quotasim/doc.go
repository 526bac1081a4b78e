// Package quotasim is a test: a day of automatic requests against providers with the limits of their free tiers, in fake time.
package quotasim
