# A model is asked: with a prompt, with what a pipe holds, and for an answer in a form.
set -eu

interlock exec "What time is it in Rome?"
git log --oneline -20 | interlock exec --model small -
interlock exec "When is it?" --output-schema answer.schema.json > answer.json
interlock threads list
