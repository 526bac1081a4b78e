// Package modelindex holds the models that discovery found at providers (R-094..R-096). Dispatchers write one listing per provider into a
// bucket; whoever needs the models follows the bucket and reads a local Book, without asking anybody.
package modelindex
