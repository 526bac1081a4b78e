package contract

// Features is a set of what models differ in beside their size: what a request needs of a model, or what a model has.
type Features uint8

// Features.
const (
	FeatureImages   Features = 1 << iota // takes images
	FeatureAudio                         // takes sound
	FeatureFiles                         // takes files
	FeatureTools                         // calls tools
	FeatureThinking                      // thinks, with an effort that can be chosen
)

// FeaturesMedia are those without which a part of a request is lost.
const FeaturesMedia = FeatureImages | FeatureAudio | FeatureFiles

// Has says whether all of the others are in the set.
func (f Features) Has(others Features) bool { return f&others == others }

// Any says whether one of the others is in the set.
func (f Features) Any(others Features) bool { return f&others != 0 }

// Needs gives what the request needs of a model.
func (t Traits) Needs() Features {
	var f Features
	for _, need := range [...]struct {
		is      bool
		feature Features
	}{{t.Images, FeatureImages}, {t.Audio, FeatureAudio}, {t.Files, FeatureFiles}, {t.Tools, FeatureTools}} {
		if need.is {
			f |= need.feature
		}
	}
	return f
}
