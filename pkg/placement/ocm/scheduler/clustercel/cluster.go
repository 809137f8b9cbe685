// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercel

import (
	"encoding/json"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// variable is the cluster's name in expressions.
const variable = "managedCluster"

// Score is one score of a cluster.
type Score struct {
	Name  string
	Value int64
}

// Cluster is a ManagedCluster for expressions. It may be shared as long as the object is not
// changed.
type Cluster struct {
	traits.Mapper
	scores func(sheet string) ([]Score, bool)
}

// NewCluster returns a Cluster of an object's fields. scores returns the scores of a sheet, and
// false if there is none of that name.
func NewCluster(object map[string]any, scores func(sheet string) ([]Score, bool)) *Cluster {
	return &Cluster{Mapper: types.NewStringInterfaceMap(types.DefaultTypeAdapter, object), scores: scores}
}

func functions() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable(variable, cel.MapType(cel.StringType, cel.DynType)),
		cel.Function(scoresFunction, cel.MemberOverload("cluster_scores", []*cel.Type{cel.DynType, cel.StringType}, cel.ListType(cel.DynType), cel.BinaryBinding(scoresOf))),
		cel.Function("parseJSON", cel.MemberOverload("string_parse_json", []*cel.Type{cel.StringType}, cel.DynType, cel.UnaryBinding(parseJSON))),
	}
}

// scoresFunction lists scores of a cluster.
const scoresFunction = "scores"

func scoresOf(of, sheet ref.Val) ref.Val {
	cluster, ok := of.(*Cluster)
	if !ok {
		return types.NewErr("only %s has scores", variable)
	}
	name, ok := sheet.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(sheet)
	}
	scores, found := cluster.scores(string(name))
	if !found {
		return types.NewErr("the cluster has no AddOnPlacementScore %q", string(name))
	}
	all := make([]any, 0, len(scores))
	for _, score := range scores {
		all = append(all, map[string]any{"name": score.Name, "value": score.Value})
	}
	return types.NewDynamicList(types.DefaultTypeAdapter, all)
}

func parseJSON(text ref.Val) ref.Val {
	encoded, ok := text.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(text)
	}
	var value any
	if err := json.Unmarshal([]byte(encoded), &value); err != nil {
		return types.WrapErr(err)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}
